// Package examples_test replays the events of each example and compares every answer with the
// documented one.
package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/serve"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// storeState is a memory store and the clock of the records.
type storeState struct {
	*memory.Store
	clock int64
}

func (s *storeState) Clock(context.Context) (int64, error) { return s.clock, nil }

func load(t *testing.T, folder string) *features.Registry {
	t.Helper()
	r, err := definition.Load(filepath.Join(folder, "features.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// replay applies the events of an example, each a second after its event time.
func replay(t *testing.T, r *features.Registry, events []byte) *storeState {
	t.Helper()
	s := &storeState{Store: memory.New()}
	mapper, batch := r.NewMapper(), &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	for line := range bytes.Lines(events) {
		var event struct {
			Time      time.Time
			Timestamp int64 // in milliseconds; an event has either
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		s.clock = max(event.Time.UnixMilli(), event.Timestamp) + time.Second.Milliseconds()
		record := record.Record{Partition: state.Partition{Topic: r.Topics()[0]}, Timestamp: s.clock, Value: bytes.TrimSpace(line)}
		batch.Reset()
		outcome, err := mapper.Map(&record, 0, batch)
		if err != nil || len(outcome.Streams) != 1 {
			t.Fatalf("%s: taken by the streams %q, error %v; want one stream", line, outcome.Streams, err)
		}
		if err := s.Apply(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// api returns an API that answers from the state as of one moment.
func api(r *features.Registry, held *storeState, now time.Time) http.Handler {
	metrics := prometheus.NewRegistry()
	return serve.New(serve.Config{
		Registry: func() *features.Registry { return r }, Reader: held, Registerer: metrics, Process: status.Process{Gatherer: metrics},
		Now: func() time.Time { return now },
	})
}

// script holds questions of an example with their answers, both in JSON, asked at one moment.
type script struct {
	Now       time.Time
	Questions []struct{ About, Question, Answer string }
}

func TestQuestions(t *testing.T) {
	for _, folder := range []string{"session-store"} {
		r := load(t, folder)
		held := replay(t, r, read(t, folder, "events.ndjson"))
		var script script
		if err := yaml.Unmarshal(read(t, folder, "questions.yaml"), &script); err != nil || len(script.Questions) == 0 {
			t.Fatalf("%d questions, error %v", len(script.Questions), err)
		}
		handler := api(r, held, script.Now)
		for _, a := range script.Questions {
			t.Run(folder+": "+a.About, func(t *testing.T) {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/query", strings.NewReader(a.Question)))
				if diff := cmp.Diff(decode(t, a.Answer), decode(t, w.Body.String())); diff != "" {
					t.Errorf("%s\nanswer (-want +got):\n%s", w.Body, diff)
				}
			})
		}
	}
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// The training set says of each page view whether it was the first.
func TestFirstVisits(t *testing.T) {
	const folder = "session-store"
	r := load(t, folder)
	stream, _ := r.Stream("page_view")
	selection := materialize.Selection{
		Registry: r, Inputs: []*record.Stream{stream}, Stream: stream, Names: []string{"page", "user_pages_seen"},
	}
	columns, err := selection.Columns()
	if err != nil {
		t.Fatal(err)
	}
	events := source.NewEvents("events.ndjson", bytes.NewReader(read(t, folder, "events.ndjson")))
	replay := materialize.Replay{
		Registry: r, Stream: stream, Columns: columns, NewState: func() materialize.State { return memory.New() },
		Inputs: []materialize.Input{{Stream: stream, Open: func(*record.Stream) (source.Source, error) { return events, nil }}},
	}
	var out strings.Builder
	_, err = replay.Run(context.Background(), func(columns []materialize.Column) (materialize.Writer, error) {
		return materialize.NewCSVWriter(&out, columns)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(read(t, folder, "first_visits.csv")), out.String()); diff != "" {
		t.Errorf("first_visits.csv (-want +got):\n%s", diff)
	}
}
