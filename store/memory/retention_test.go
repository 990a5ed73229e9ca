package memory_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// Entities without further events are eventually dropped.
func TestOldEntitiesAreDropped(t *testing.T) {
	list := keptForAWhile()
	s := memory.New()
	most := 0
	for i := range int64(2000) {
		b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		addEvent(b, list, i, i*day, 1, fmt.Sprint("d", i), "u")
		if err := s.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		most = max(most, s.Len())
	}
	if most > 20*len(list) {
		t.Errorf("up to %d series of entities were held at once, where 10 days need %d", most, 10*len(list))
	}
}

// Events at the horizon are kept; events before it are not.
func TestHorizonIsKept(t *testing.T) {
	for _, series := range keptForAWhile() {
		s := memory.New()
		horizon := int64(100 * day)
		for i, at := range []int64{horizon - series.Tile, horizon, horizon + series.Keep} {
			b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
			addEvent(b, []*state.Series{series}, int64(i), at, 1, "d", fmt.Sprint("u", i))
			if err := s.Apply(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		read, err := s.Read(ctx, []state.Read{{Series: series, Entity: "d", First: math.MinInt64, Last: math.MaxInt64}})
		if err != nil {
			t.Fatal(err)
		}
		n := len(read[0].Buckets) + len(read[0].Members) + int(read[0].Count) + int(read[0].Moments.N) + len(read[0].Groups)
		for i := range 3 {
			if read[0].Filter != nil && read[0].Filter.Has(fmt.Append(nil, "u", i)) {
				n++
			}
		}
		if err := read[0].Log.Records(func(state.LogRecord) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		if n != 2 {
			t.Errorf("%s holds %d of three tiles, want the last two", series.Measure, n)
		}
	}
}

// Growing state stays within the bytes of its series, as in Redis, and states what it lacks; state that fits lacks
// nothing.
func TestStatesAreBounded(t *testing.T) {
	bounded := &state.Series{ID: "bound", Group: "kept", By: []string{"device"}, Measure: state.Distinct, Type: value.String, Tile: day, Keep: 8 * day, Values: 10_000, Bytes: 4000}
	free := &state.Series{ID: "bfree", Group: "kept", By: []string{"device"}, Measure: state.Distinct, Type: value.String, Tile: day, Keep: 8 * day, Values: 10_000}
	stored := memory.New()
	b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	for i := range int64(5000) {
		b.Reset()
		b.Ranges, b.Now = b.Ranges[:1], 100*day
		for _, device := range []string{"hot", "cold"} {
			if device == "cold" && i >= 100 {
				continue
			}
			b.Update(0, i, []byte(device))
			for _, s := range []*state.Series{bounded, free} {
				b.Add(state.Mutation{Series: s, Tile: 100, Text: &state.Text{Member: fmt.Appendf(nil, "user %d", i)}})
			}
		}
		if err := stored.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	got, err := stored.Read(ctx, []state.Read{
		{Series: bounded, Entity: "hot", First: 100, Last: 100}, {Series: free, Entity: "hot", First: 100, Last: 100},
		{Series: bounded, Entity: "cold", First: 100, Last: 100},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got[0].Members); got[0].Bound == 0 || n > 5000/len("user 1234") || n < 4000/4/len("user 1234 and its tile") {
		t.Errorf("%d of 5000 values are kept, below hash %x", n, got[0].Bound)
	}
	if len(got[1].Members) != 5000 || got[1].Bound != 0 || len(got[2].Members) != 100 || got[2].Bound != 0 {
		t.Errorf("without a bound %d of 5000 values are kept, and %d of 100", len(got[1].Members), len(got[2].Members))
	}
}

// A log drops events that its series does not keep, but not with each event.
func TestLogsAreBounded(t *testing.T) {
	const keep = 1000
	log := &state.Series{ID: "log00", Measure: state.Record, Tile: 1, Keep: keep, Max: 1 << 20}
	held := memory.New()
	for now := range int64(10 * keep) {
		b := &state.Batch{Now: now}
		b.Update(0, now, []byte("d"))
		b.Add(state.Mutation{Series: log, Tile: now, Text: &state.Text{Member: b.Hold(state.AppendLogRecord(nil, state.AppendLogTime(nil, now)))}})
		if err := held.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		records := 0
		got, _ := held.Log(log, []byte("d"))
		if err := got.Records(func(state.LogRecord) bool { records++; return true }); err != nil {
			t.Fatal(err)
		}
		if least, most := min(int(now), keep), keep+keep/8+1; records < least || records > most {
			t.Fatalf("at %d the log holds %d records, want %d to %d", now, records, least, most)
		}
	}
}

// A record that has become too old is dropped at once, but one update later if windows beside the log may hold it.
func TestLogsKeepWhatWindowsHold(t *testing.T) {
	log := &state.Series{ID: "log00", Measure: state.Record, Tile: 1, Keep: 10, Max: 100}
	for _, beside := range []bool{false, true} {
		var first []int64
		held := memory.New()
		for _, now := range []int64{100, 105, 111, 112} {
			b := &state.Batch{Now: now}
			b.Update(0, now, []byte("d"))
			b.Add(state.Mutation{Series: log, Tile: now, Text: &state.Text{Member: b.Hold(state.AppendLogRecord(nil, state.AppendLogTime(nil, now)))}})
			if err := held.Apply(ctx, b); err != nil {
				t.Fatal(err)
			}
			got, windows := held.Log(log, []byte("d"))
			if beside {
				*windows = "windows"
			}
			record, _, err := got.Record(0)
			if err != nil {
				t.Fatal(err)
			}
			first = append(first, record.Time)
		}
		want := []int64{100, 100, 105, 105}
		if beside {
			want = []int64{100, 100, 100, 105}
		}
		if !slices.Equal(first, want) {
			t.Errorf("windows beside: %v. The log begins at %d, want %d", beside, first, want)
		}
	}
}
