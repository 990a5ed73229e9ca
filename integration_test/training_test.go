package integration_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// served is the answer of a live question about an entity at a moment.
type served struct {
	keys    map[string]string
	at      int64
	answers map[string]answer
}

// A training set "as served" equals the live answers at its moments: it holds all events of both streams that had
// arrived by then, and no later arrivals. A training set by event time also holds those.
func TestTrainingSetEqualsTheAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	shipped, err := filepath.Abs("../config/features")
	if err != nil {
		t.Fatal(err)
	}
	s := newSceneOf(t, server.Client(t), []string{shipped}, "--redis.addresses", server.Addr())
	w := s.start("processor,api")
	w.awaitReady()
	options := generate.Demo()
	options.Users, options.Late, options.LateBy, options.Spacing = 20, 0.05, 20*24*time.Hour, 10*time.Minute
	generator := generate.New(11, options)
	const rounds, perRound = 5, 400
	var lines []byte
	var log []served
	next := generator.Next()
	for range rounds {
		var events []generate.Event
		for len(events) < perRound || next.Timestamp == events[len(events)-1].Timestamp {
			events = append(events, next)
			lines = generate.AppendNDJSON(lines, next)
			next = generator.Next()
		}
		if err := s.write(events, s.producer.write); err != nil {
			t.Fatal(err)
		}
		s.awaitApplied()
		log = append(log, askAbout(t, w, s, events)...)
	}
	dir := t.TempDir()
	events, spine := filepath.Join(dir, "events.ndjson"), filepath.Join(dir, "spine.csv")
	if err := os.WriteFile(events, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	rows := "row,at,user_id,device_id,card_id\n"
	for i, l := range log {
		rows += fmt.Sprintf("%d,%d,%s,%s,%s\n", i, l.at, l.keys["user_id"], l.keys["device_id"], l.keys["card_id"])
	}
	if err := os.WriteFile(spine, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, as := range []string{"served", "events"} {
		output := filepath.Join(dir, as+".csv")
		said, err := exec.Command(binary, "materialize", "--features", shipped, "--service", "payment_risk", "--quality",
			"--input", events, "--spine", spine, "--as", as, "--output", output).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		compared, differ := compareServed(t, output, log, as == "served")
		if compared < rounds*500 || (differ > 0) != (as == "events") {
			t.Errorf("rows from %s: of %d values %d differ from the answers\n%s", as, compared, differ, said)
		}
	}
}

// askAbout asks the service about the entities of some payments, as of now.
func askAbout(t *testing.T, w *weir, s *scene, events []generate.Event) (log []served) {
	t.Helper()
	service, ok := s.registry.Service("payment_risk")
	if !ok {
		t.Fatal("the service is not defined")
	}
	q := question{At: s.clock}
	for _, f := range service.Features {
		q.Features = append(q.Features, f.Name)
	}
	for _, e := range events {
		var all map[string]any
		if err := json.Unmarshal(e.Value, &all); err != nil {
			t.Fatal(err)
		}
		keys := map[string]string{}
		for _, key := range []string{"user_id", "device_id", "card_id"} {
			if text, ok := all[key].(string); ok {
				keys[key] = text
			}
		}
		if len(keys) < 3 || len(log) == 60 {
			continue
		}
		entity, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		q.Entities = append(q.Entities, entity)
		log = append(log, served{keys: keys, at: s.clock})
	}
	answers, err := w.ask(q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range log {
		log[i].answers = answers[i]
	}
	return log
}

// compareServed compares a training set with the live answers.
func compareServed(t *testing.T, name string, log []served, show bool) (compared, differ int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(log)+1 {
		t.Fatal(len(rows), err)
	}
	for _, row := range rows[1:] {
		cells := map[string]string{}
		for i, column := range rows[0] {
			cells[column] = row[i]
		}
		n, err := strconv.Atoi(cells["row"])
		if err != nil {
			t.Fatal(err)
		}
		for feature, a := range log[n].answers {
			compared++
			want := strings.Trim(string(a.Value), `"`)
			if want == "null" {
				want = ""
			}
			status := a.Status
			// A training set made from files knows no missing records. The events' clock is behind the server's, which does
			// not know that no event came after the moment.
			if status == query.Incomplete || status == query.LaterEvents {
				status = query.Status(cells[feature+"_status"])
			}
			if !sameNumber(cells[feature], want) || cells[feature+"_status"] != string(status) {
				if differ++; show && differ < 10 {
					t.Errorf("row %d, %v at %d: %s is %s, %s; the answer was %s, %s", n, log[n].keys, log[n].at, feature,
						cells[feature], cells[feature+"_status"], want, a.Status)
				}
			}
		}
	}
	return compared, differ
}

// sameNumber reports whether texts are equal, or are numbers that differ only by the order of
// summation.
func sameNumber(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-9*math.Abs(y)
}
