package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// A moment is given as a time, or as how long ago it was.
func TestParseMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "24h": now.Add(-24 * time.Hour), "90d": now.AddDate(0, 0, -90), "2026-01-31T23:59:59Z": now.Add(-12*time.Hour - time.Second),
		"1769903999000": now.Add(-12*time.Hour - time.Second),
	} {
		if got, err := parseMoment("--since", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1h", "yesterday", "2026-01-31", "1.5h", "24", "1769903999"} {
		if got, err := parseMoment("--since", text, now); err == nil {
			t.Errorf("%q was accepted as %v", text, got)
		}
	}
}

// A cut is a moment, and never a number of seconds, which would be a moment of 1970.
func TestMomentOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"2026-01-31T23:59:59Z": 1769903999000, "1769903999000": 1769903999000, "1969-12-31T23:59:59Z": -1000} {
		if got, err := momentOf("--until", text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1769903999", "-1", "24h", "2026-01-31"} {
		if got, err := momentOf("--until", text); err == nil {
			t.Errorf("%q was accepted as %d", text, got)
		}
	}
}

// Definitions without a stream have none to take for that of a file without a name.
func TestFilesWithoutStreams(t *testing.T) {
	t.Parallel()
	f := fromFiles{inputs: []string{"in.csv"}, registry: &features.Registry{}}
	if _, err := f.byTopic(t.Context(), nil); fmt.Sprint(err) != "in.csv: name the stream of its events: STREAM=in.csv" {
		t.Errorf("got error %v", err)
	}
}

// A cut divides the events of one topic, so files are for streams of one. A stream that has one of several topics counts those events
// from the log, and needs no files.
func TestFilesOfStreamsOfSeveralTopics(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "in.ndjson")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := defined.Registry(t, `
streams:
  both: {topics: [payments, transfers], timestamp: at, fields: {user: string}}
  paid: {topic: payments, timestamp: at, fields: {user: string}}
`)
	f := fromFiles{inputs: []string{"both=" + file}, registry: r, out: io.Discard}
	if _, err := f.byTopic(t.Context(), nil); fmt.Sprint(err) != "both="+file+": stream both reads several topics (payments, transfers), and a cut divides the events of one: files fill streams of one topic" {
		t.Errorf("got error %v", err)
	}
	f.inputs = []string{"paid=" + file}
	if inputs, err := f.byTopic(t.Context(), nil); err != nil || len(inputs["payments"]) != 1 {
		t.Errorf("error %v, inputs %v; want the file", err, inputs)
	}
}
