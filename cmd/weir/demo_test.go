package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/internal/generate"
)

func TestDemoAccountsForEveryEvent(t *testing.T) {
	const n = 5000
	p := start(t, "demo", "--listen", "127.0.0.1:0", "--events", "5000", "--seed", "3", "--exit")
	if err := p.wait(t); err != nil {
		t.Fatalf("%v\n%s", err, p.err.String())
	}
	var got struct {
		Events, Applied, Dead int64
		Seconds               float64
	}
	out := p.out.String()
	if err := json.Unmarshal([]byte(out), &got); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("printed %q: %v", out, err)
	}
	if want := unusable(t, 3, n); got.Events != n || got.Dead != want || got.Applied != n-want || got.Seconds <= 0 {
		t.Errorf("printed %s; %d of the events cannot be used", out, want)
	}
	if unusable(t, 1, n) == got.Dead {
		t.Error("seeds 1 and 3 do not tell whether --seed is heeded")
	}
}

// unusable counts the events of a seed that the shipped definitions cannot use.
func unusable(t *testing.T, seed uint64, events int) (n int64) {
	t.Helper()
	registry, err := features.Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	mapper := registry.NewMapper()
	made := generate.New(seed, generate.Demo())
	for range events {
		e := made.Next()
		record := features.Record{Partition: kinds.Partition{Topic: e.Topic}, Timestamp: e.Timestamp, Key: e.Key, Value: e.Value}
		if _, err := mapper.Map(&record, 0, &kinds.Batch{}); err != nil {
			n++
		}
	}
	return n
}

func TestDemoAnswersWhatItAsks(t *testing.T) {
	p := start(t, "demo", "--listen", "127.0.0.1:0")
	p.shows(t, "all there is to ask for")
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	text := p.err.String()
	for _, want := range []string{"  curl 'http://127.0.0.1:", `"status":"PRESENT"`, "  weir query --address ", " device_tx_7d "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
