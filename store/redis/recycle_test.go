package redisstore

import (
	"errors"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Recycled window states hold nothing of an earlier question, but room for a few buckets.
func TestRecycledWindowStatesAreEmpty(t *testing.T) {
	t.Parallel()
	until := int64(1)
	few := []state.Bucket{{Tile: 1, Value: value.Value{Type: value.String, Str: []byte("jane")}}}
	many := make([]state.Bucket, maxBuckets+1)
	list := []state.WindowState{
		{Buckets: few, LostUntil: &until},
		{Buckets: many, Members: []string{"jane"}, Count: 1, Bound: 1, Capped: true},
		{Err: errors.New("damaged")},
	}
	new(Store).Recycle(list)
	for i, s := range list {
		if !s.Empty() || s.Bound != 0 || s.Capped || s.LostUntil != nil || s.Err != nil {
			t.Errorf("recycled window state %d holds %+v, want nothing", i, s)
		}
	}
	if cap(list[0].Buckets) != 1 || few[0].Value.Str != nil {
		t.Errorf("the kept buckets are %+v, want the one given, emptied", list[0].Buckets[:cap(list[0].Buckets)])
	}
	if list[1].Buckets != nil {
		t.Error("a long list of buckets is kept, want it released")
	}
}

// Reads into recycled window states return the state, or an empty one if there is none.
func TestReadsIntoRecycledWindowStates(t *testing.T) {
	t.Parallel()
	s := newStore(t, miniredis(t), 1)
	start(t, s, transactions)
	b := begin(t, s, transactions)
	fill(b, 0, event{device: "d1", user: "u", time: 100 * day, cents: 10}, event{offset: 1, device: "d1", user: "u", time: 101 * day, cents: 10})
	apply(t, s.newWriter(), b)
	for range 100 {
		for device, want := range map[string]int{"d1": 1, "d2": 0} {
			windowStates, err := s.Read(t.Context(), []state.Read{
				{Series: events, Entity: device, First: 100, Last: 101, Total: true}, {Series: amount, Entity: device, First: 100, Last: 101},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(windowStates[0].Buckets) != want || len(windowStates[1].Buckets) != 2*want {
				t.Fatalf("%s: got %+v, want %d and %d buckets", device, windowStates, want, 2*want)
			}
			s.Recycle(windowStates)
		}
	}
}
