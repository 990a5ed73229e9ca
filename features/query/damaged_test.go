package query

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// damagedReader answers with one event, and with damage for some entities.
type damagedReader map[string]error

func (r damagedReader) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	states := make([]state.WindowState, len(reads))
	for i, read := range reads {
		switch err := r[read.Entity]; {
		case err != nil:
			states[i].Err = err
		case read.Series.Measure == state.Distinct:
			states[i].Members = []string{"d1", "d2"}
		case read.Series.Measure == state.Record:
			states[i].Log = state.Log(state.LogHeader)
		default:
			states[i].Buckets = []state.Bucket{{Tile: read.Last, Value: value.Value{Type: value.Int, Num: 1}}}
		}
	}
	return states, nil
}

// annDefinitions define annFeatures.
var (
	annFeatures    = []string{"count", "exact", "devices", "share", "there"}
	annDefinitions = []string{
		"count: COUNT(1d, tx, user)", "exact: COUNT(1h, tx, user, tile=exact)", "devices: COUNT(1d, tx, user, device)",
		"share: {expr: count / devices, default: 0}",
		"there: COUNT(7d, tx, SET(1h, tx, user, device), max=3)",
	}
)

// readAnn asks for annFeatures of the user ann and of her device d1.
func readAnn(t *testing.T, r *features.Registry, at int64, reader Reader) (reading Reading) {
	t.Helper()
	reading.Reset(at)
	for _, name := range annFeatures {
		f, entity := defined.Feature(t, r, name), "ann"
		if len(f.By) == 2 {
			entity = "ann|d1"
		}
		reading.Want(f, entity, at)
	}
	if err := reading.Read(context.Background(), reader); err != nil {
		t.Fatal(err)
	}
	return reading
}

// A feature that depends on damaged state has no value, not even its default; the other features of the question have
// theirs.
func TestDamagedState(t *testing.T) {
	const at = int64(1_532_520_000_000)
	r := defined.Features(t, annDefinitions...)
	damage := errors.New("damaged")
	oldLog := errors.New("group x, series y: the log is of version 9, and this program reads version 1")
	for name, test := range map[string]struct {
		reader Reader
		want   map[string]error // by feature
	}{
		"nothing":      {damagedReader{}, nil},
		"the user":     {damagedReader{"ann": damage}, map[string]error{"count": damage, "exact": damage, "share": damage, "there": damage}},
		"the pair":     {damagedReader{"ann|d1": damage}, map[string]error{"devices": damage, "share": damage}},
		"a member":     {damagedReader{"d2": damage}, map[string]error{"there": damage}},
		"another user": {damagedReader{"bob": damage}, nil},
		"a log":        {&memberReader{log: state.Log("\x09......")}, map[string]error{"exact": oldLog}},
	} {
		reading := readAnn(t, r, at, test.reader)
		for _, of := range annFeatures {
			a := Answer{Capped: true, Items: []aggregate.Item{{}}} // of the answer before
			reading.Next(&a)
			err := test.want[of]
			if (a.Status == Damaged) != (err != nil) || (a.Err == nil) != (err == nil) {
				t.Errorf("%s is damaged: %s is %s, %v; want %v", name, of, a.Status, a.Err, err)
				continue
			}
			if err == nil {
				continue
			}
			from, to := Covers(defined.Feature(t, r, of), at, at)
			if !a.Value.IsNull() || a.Items != nil || a.Exact || a.Capped || a.From != from || a.To != to {
				t.Errorf("%s is damaged: %s is %+v, want no value", name, of, a)
			}
			if err != oldLog && a.Err != err {
				t.Errorf("%s is damaged: %s has the error %v, want %v", name, of, a.Err, err)
			}
		}
	}
}

// lossyReader answers with one event, from state that lost its records up to a moment.
type lossyReader map[string]int64

func (r lossyReader) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	states, err := damagedReader{}.Read(ctx, reads)
	for i, read := range reads {
		if until, ok := r[read.Entity]; ok {
			states[i].LostUntil = &until
		}
	}
	return states, err
}

// A feature whose state was dropped is incomplete until after the lost records; so is every feature that depends on it.
func TestDroppedState(t *testing.T) {
	const at, hour = int64(1_532_520_000_000), int64(3_600_000)
	r := defined.Features(t, annDefinitions...)
	for name, test := range map[string]struct {
		reader lossyReader
		want   map[string]int64 // complete since
	}{
		"nothing":  {lossyReader{}, nil},
		"the user": {lossyReader{"ann": at - hour/2}, map[string]int64{"count": at - hour/2, "exact": at - hour/2, "share": at - hour/2, "there": at - hour/2}},
		"long ago": {lossyReader{"ann": at - 40*24*hour}, map[string]int64{}},
		"a list":   {lossyReader{"ann": at - 2*hour}, map[string]int64{"count": at - 2*hour, "share": at - 2*hour}}, // of an hour: it is complete
		"a member": {lossyReader{"d2": at - 24*hour}, map[string]int64{"there": at - 24*hour}},
		"both":     {lossyReader{"ann": at - 2*hour, "ann|d1": at - hour}, map[string]int64{"count": at - 2*hour, "devices": at - hour, "share": at - hour}},
	} {
		reading := readAnn(t, r, at, test.reader)
		for _, of := range annFeatures {
			var a Answer
			reading.Next(&a)
			since, lost := test.want[of]
			if since++; (a.Status == Incomplete) != lost || lost && (a.CompleteSince != since || a.Exact) {
				t.Errorf("%s was dropped: %s is %s, complete since %d, exact %v; want incomplete %v, since %d", name, of, a.Status, a.CompleteSince, a.Exact, lost, since)
			}
		}
	}
}

// If the lag grew by more than the margin of the keys' time to live, the state of the window's beginning may have
// expired, and the answer says so.
func TestExpiredState(t *testing.T) {
	const now, hour = int64(1_532_520_000_000), int64(3_600_000)
	r := defined.Features(t,
		"count: COUNT(1d, tx, user)", "long: COUNT(7d, tx, device)", "ever: COUNT(lifetime, tx, user)",
		"share: {expr: count / ever, default: 0}")
	lag := func(ms int64) *int64 { return &ms }
	for name, test := range map[string]struct {
		history    *state.History
		behind     int64    // how far the moment of the question is behind the clock
		incomplete []string // features
	}{
		"no history":               {nil, 48 * hour, nil},
		"nothing was applied":      {&state.History{Slack: hour}, 48 * hour, nil},
		"no lag":                   {&state.History{Slack: hour, Lag: lag(0)}, 0, nil},
		"a lag that keys outlive":  {&state.History{Slack: hour, Lag: lag(0)}, 2 * hour, nil},
		"an outage":                {&state.History{Slack: hour, Lag: lag(0)}, 5 * hour, []string{"count", "share"}},
		"a long one":               {&state.History{Slack: hour, Lag: lag(0)}, 48 * hour, []string{"count", "share", "long"}},
		"a replay of history":      {&state.History{Slack: hour, Lag: lag(10000 * hour)}, 10000 * hour, nil},
		"one after an outage":      {&state.History{Slack: hour, Lag: lag(10000 * hour)}, 10005 * hour, []string{"count", "share"}},
		"one, and slack was given": {&state.History{Slack: 6 * hour, Lag: lag(10000 * hour)}, 10005 * hour, nil},
	} {
		var reading Reading
		at := now - test.behind
		reading.Reset(now)
		names := []string{"count", "long", "ever", "share"}
		for _, name := range names {
			reading.Want(defined.Feature(t, r, name), "x", at)
		}
		if err := reading.Read(context.Background(), damagedReader{}); err != nil {
			t.Fatal(err)
		}
		reading.SetRemaining(test.history.Remaining(now))
		var got []string
		for _, of := range names {
			var a Answer
			reading.Next(&a)
			if a.Status == Incomplete {
				got = append(got, of)
				if a.Exact || a.CompleteSince <= a.From {
					t.Errorf("%s: %s has exact %v, from %d, complete since %d; want incomplete", name, of, a.Exact, a.From, a.CompleteSince)
				}
			} else if a.CompleteSince != state.MinTime {
				t.Errorf("%s: %s is complete since %d, want since always", name, of, a.CompleteSince)
			}
		}
		slices.Sort(got)
		slices.Sort(test.incomplete)
		if !slices.Equal(got, test.incomplete) {
			t.Errorf("%s: %v are incomplete, want %v", name, got, test.incomplete)
		}
	}
}
