package query

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// The state is kept for as long as a window may look back.
func TestStateIsKeptForTheWindow(t *testing.T) {
	for definition, want := range map[string]int64{
		"COUNT(session 30m, tx, user)":                                   (window.Day + 90*time.Minute).Milliseconds(),
		"COUNT(session 2d max_length 3d, tx, user, delay=1d)":            (6*window.Day + time.Hour).Milliseconds(),
		"COUNT(session 2d, tx, user, keep=0s)":                           (22 * window.Day).Milliseconds(),
		"COUNT(fixed 1h, tx, user)":                                      (2*window.Day + time.Hour).Milliseconds(),
		"COUNT(fixed 36500d, tx, user, keep=0s)":                         2 * window.Longest.Milliseconds(),
		"COUNT(last 10, tx, user)":                                       0,
		"COUNT(rolling 7d last 10, tx, user)":                            (7*window.Day + time.Hour).Milliseconds(),
		"COUNT(calendar day tz Europe/Berlin, tx, user)":                 (26 * time.Hour).Milliseconds(),
		"COUNT(tumbling 5m, tx, user)":                                   (65 * time.Minute).Milliseconds(),
		"COUNT(36500d, tx, user, delay=36500d, keep=36500d, tile=exact)": 3 * window.Longest.Milliseconds(),
	} {
		if got := defined.Features(t, "f: "+definition).Features[0].Series[0].Keep; got != want {
			t.Errorf("%s keeps %d ms, want %d", definition, got, want)
		}
	}
}

// Logs of several entities taken together have a session each.
func TestWindowsOfSeveralEntities(t *testing.T) {
	f := defined.Features(t, "f: LAST_K(session 30m, tx, device, user, k=9)").Features[0]
	log := func(device string, minutes ...int64) *eventLog {
		t.Helper()
		held := []byte(state.LogHeader)
		for _, m := range minutes {
			record := state.AppendLogTime(nil, m*60_000)
			record = state.AppendLogColumn(record, *f.Columns.Field, value.Value{Type: value.String, Str: []byte(device)})
			held = state.AppendLogRecord(held, record)
		}
		l, err := decodeLog(&state.WindowState{Log: held})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, b, over := log("a", 0, 60, 80), log("b", 10, 50, 70), log("c", 0, 30)
	for _, test := range []struct {
		name  string
		logs  []*eventLog
		from  int64
		items string
	}{
		{"two", []*eventLog{a, b}, 50, "abab"},
		{"one that is over", []*eventLog{a, over}, 60, "aa"},
		{"none", []*eventLog{noLog}, 90 - 24*60, ""},
	} {
		r, s, err := fold(&frame{Feature: f}, test.logs, 90*60_000, new([]aggregate.Sample))
		if err != nil {
			t.Fatal(err)
		}
		items := ""
		for _, i := range r.Items {
			items += string(i.Value.Str)
		}
		if wide := state.FloorDiv(s.from, 60_000); wide != test.from || s.to != 90*60_000 || items != test.items {
			t.Errorf("%s: items %q, from %d to %d; want %q from %d", test.name, items, wide, s.to, test.items, test.from)
		}
	}
}
