package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// All spellings define the same feature.
func TestMultiHopForms(t *testing.T) {
	feature := featuresOf(t, "through.yaml")
	one := feature("devices")
	for _, name := range []string{"flat", "long", "long_flat", "by_macro", "by_macros"} {
		f := feature(name)
		if f.Definition != one.Definition || cmp.Diff(f.By, one.By) != "" || f.FanOut() != one.FanOut() {
			t.Errorf("%s is %s by %v, want %s by %v", name, f.Definition, f.By, one.Definition, one.By)
		}
		if f.Series[0] != one.Series[0] || f.Series[1] != one.Series[1] {
			t.Errorf("%s does not share the series of the same feature in one line", name)
		}
	}
	for name, want := range map[string]string{
		"devices":    `COUNT_DISTINCT(30d, login, SET(30d, login, device_id, user_id), device_id)`,
		"spent":      `SUM(7d, transaction, amount, customer, tile=exact, where='ok', keep=30m, max=20, through=device_users)`,
		"spent_by":   `SUM(7d, transaction, amount, SET(7d, transaction, device_id, customer))`,
		"other_name": `COUNT(1d, transaction, customer, delay=2h, through=SET(1d, login, device_id, user_id, keep=2h))`,
		"kept":       `COUNT(7d, login, SET(7d, login, city, device_id, user_id, keep=1d), keep=1d)`,
		"of_card":    `SET(lifetime, transaction, card, customer, max=1000, through=device_cards)`,
		"cities":     `COUNT_DISTINCT(1d, login, SET(1d, login, device_id, user_id, where='city != "device"'), city)`,
	} {
		if got := feature(name).Definition; got != want {
			t.Errorf("%s compiles to\n%s, want\n%s", name, got, want)
		}
	}
}

// The feature has the keys, the past and the fan-out of both hops.
func TestMultiHopHasBothHops(t *testing.T) {
	feature := featuresOf(t, "through.yaml")
	for name, want := range map[string]struct {
		by      string
		each    string
		keep    time.Duration
		forgets bool
		fanOut  int
	}{
		"devices":    {"device_id", "user_id", time.Hour, true, 100},
		"spent":      {"device_id", "customer", 30 * time.Minute, true, 20},
		"other_name": {"device_id", "customer", time.Hour, true, 100},
		"kept":       {"city device_id", "user_id", window.Day, true, 100},
		"of_card":    {"device_id", "card", time.Hour, true, 1000},
		"spent_each": {"device_id", "", 30 * time.Minute, true, 120},
	} {
		f := feature(name)
		if got := strings.Join(f.By, " "); got != want.by || f.Keep != want.keep || f.Forgets() != want.forgets || f.FanOut() != want.fanOut {
			t.Errorf("%s: by %s, keep %s, forgets %v, fan-out %d; want %+v", name, got, f.Keep, f.Forgets(), f.FanOut(), want)
		}
		if multiHop, ok := f.Basis.(*features.MultiHop); ok && strings.Join(multiHop.Each.By, " ") != want.each {
			t.Errorf("%s: each is by %v, want %s", name, multiHop.Each.By, want.each)
		}
	}
	if typ := feature("of_card").Type(); typ != value.String {
		t.Errorf("a set of customers has the type %s, want string", typ)
	}
}

// memberReader answers reads of logs with members of a set and all others with one event, and
// records the reads.
type memberReader struct {
	log    state.Log
	rounds [][]state.Read
	fail   int // the round that fails, from 1
	lose   int // the round that loses its last window state
}

var errReader = errors.New("away")

func (r *memberReader) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	r.rounds = append(r.rounds, append([]state.Read(nil), reads...))
	if len(r.rounds) == r.fail {
		return nil, errReader
	}
	states := make([]state.WindowState, len(reads))
	for i, read := range reads {
		if read.Series.Measure == state.Record {
			states[i].Log = r.log
		} else {
			states[i].Buckets = []state.Bucket{{Value: value.Value{Type: value.Int, Num: 1}}}
		}
	}
	if len(r.rounds) == r.lose {
		states = states[1:]
	}
	return states, nil
}

// logOf is the log made by events of ann with these devices.
func logOf(t *testing.T, r *features.Registry, at int64, devices ...string) state.Log {
	t.Helper()
	log := []byte(state.LogHeader)
	mapper := r.NewMapper()
	for _, device := range devices {
		b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		value := fmt.Appendf(nil, `{"ts":%d,"user":"ann","device":%q,"fee":0}`, at, device)
		if _, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: "transactions"}, Timestamp: at, Value: value}, 0, b); err != nil {
			t.Fatal(err)
		}
		for _, mutation := range b.Mutations {
			if mutation.Series.Measure == state.Record {
				log = append(log, mutation.Member...)
			}
		}
	}
	return log
}

const multiHopFeature = `there: COUNT(7d, tx, SET(1h, tx, user, device, tile=exact), max=3)`

// The second round trip reads all members of all features, and nothing that was already read. Questions of one hop have
// no second round trip.
func TestMultiHopTakesTwoRoundTrips(t *testing.T) {
	const at = int64(1_532_520_000_000)
	r := defined.Features(t, multiHopFeature, "set: SET(1h, tx, user, device, tile=exact)", "plain: COUNT(7d, tx, device)",
		"more: COUNT(7d, tx, device, through=set)", "sum: {expr: there + more + plain}")
	entities := func(reads []state.Read) (texts []string) {
		for _, read := range reads {
			texts = append(texts, read.Entity)
		}
		return texts
	}
	reader := &memberReader{log: logOf(t, r, at, "d|1", "d2", "d2", "d3", "d4")}
	var reading Reading
	ask := func(name, entity string) Answer {
		t.Helper()
		var a Answer
		reading.Next(&a)
		return a
	}
	reading.Reset(at)
	want := func(name, entity string) { reading.Want(defined.Feature(t, r, name), entity, at) }
	want("there", "ann")
	want("plain", "d2")
	want("more", "ann")
	want("sum", `ann|d3`)
	if err := reading.Read(context.Background(), reader); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, round := range reader.rounds {
		got = append(got, entities(round))
	}
	if diff := cmp.Diff([][]string{{"ann", "d2", "d3"}, {"d4", `d\|1`}}, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	for _, test := range []struct {
		name, entity, want string
		capped             bool
	}{{"there", "ann", "3", true}, {"plain", "d2", "1", false}, {"more", "ann", "4", false}, {"sum", "d3|ann", "8", true}} {
		a := ask(test.name, test.entity)
		if got := string(a.Value.AppendText(nil)); got != test.want || a.Capped != test.capped || a.Exact == a.Capped {
			t.Errorf("%s of %s is %s, %+v; want %s, capped %v", test.name, test.entity, got, a, test.want, test.capped)
		}
	}

	reader.rounds = nil
	reading.Reset(at)
	want("plain", "d2")
	if err := reading.Read(context.Background(), reader); err != nil || len(reader.rounds) != 1 {
		t.Errorf("error %v, %d round trips, want 1", err, len(reader.rounds))
	}
	// Without members there is no second round trip.
	reader = &memberReader{}
	reading.Reset(at)
	want("there", "ann")
	if err := reading.Read(context.Background(), reader); err != nil || len(reader.rounds) != 1 {
		t.Errorf("error %v, %d round trips, want 1", err, len(reader.rounds))
	}
	if a := ask("there", "ann"); a.Status != NotFound || string(a.Value.AppendText(nil)) != "0" {
		t.Errorf("without members: got %+v, want not found and 0", a)
	}
}

// The answer covers what the second hop covers.
func TestMultiHopCoverage(t *testing.T) {
	const at, hour = int64(1_532_520_000_000), int64(3_600_000) // noon
	r := defined.Features(t, multiHopFeature)
	var reading Reading
	reading.Reset(at)
	reading.Want(defined.Feature(t, r, "there"), "ann", at)
	if err := reading.Read(context.Background(), &memberReader{log: logOf(t, r, at, "d1")}); err != nil {
		t.Fatal(err)
	}
	var a Answer
	reading.Next(&a)
	if from := at - 6*24*hour - 12*hour; a.From != from || a.To != at || a.Status != Present || !a.Exact || a.Capped {
		t.Errorf("%+v, want from %d to %d", a, from, at)
	}
}

// An error in either round trip is returned, and nothing is answered.
func TestMultiHopFails(t *testing.T) {
	const at = int64(1_532_520_000_000)
	r := defined.Features(t, multiHopFeature, "exact: COUNT(7d, tx, SET(1h, tx, user, device, tile=exact), tile=exact)")
	log := logOf(t, r, at, "d1", "d2")
	for name, test := range map[string]struct {
		reader memberReader
		want   string
	}{
		"the first round trip":         {memberReader{log: log, fail: 1}, "away"},
		"the second":                   {memberReader{log: log, fail: 2}, "away"},
		"a window state of the first":  {memberReader{log: log, lose: 1}, "the store answered 0 of 1 reads"},
		"a window state of the second": {memberReader{log: log, lose: 2}, "the store answered 1 of 2 reads"},
	} {
		var reading Reading
		reading.Reset(at)
		reading.Want(defined.Feature(t, r, "there"), "ann", at)
		if err := reading.Read(context.Background(), &test.reader); err == nil || err.Error() != test.want {
			t.Errorf("%s fails: got error %v, want %s", name, err, test.want)
		}
	}
}

func TestMultiHopExplained(t *testing.T) {
	r := defined.Features(t,
		"set: SET(1d, login, user, device)", "mean: AVG(7d, tx, amount, device)",
		"sum: SUM(7d, tx, amount, device, through=set, max=40)", "count: COUNT(7d, tx, device, through=set, max=30)",
		"both: {expr: 'sum / count + mean'}")
	explained := map[string]cost.Feature{}
	for _, p := range cost.Explain(r).Features {
		explained[p.Name] = p
	}
	for name, want := range map[string]struct {
		keys, trips, fanOut int
		state               string
	}{
		"set":  {1, 1, 0, "members"},
		"mean": {1, 1, 0, "tiles"},
		"sum":  {41, 2, 40, "members tiles"},
		// The set of the user, the 40 devices that both features go through, each with both numbers in one key, and the
		// device in the question.
		"both": {42, 2, 70, "members tiles"},
	} {
		p := explained[name]
		if p.Keys != want.keys || p.RoundTrips != want.trips || p.FanOut != want.fanOut || !p.Exact || strings.Join(p.State, " ") != want.state {
			t.Errorf("%s: %+v, want %+v", name, p, want)
		}
	}
	for _, s := range cost.Explain(r).Series {
		if s.State == "members" && cmp.Diff([]string{"both", "count", "set", "sum"}, s.Features) != "" {
			t.Errorf("the members are used by %v, want both, count, set and sum", s.Features)
		}
	}
}
