package storetest

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testSpare checks that a batch prunes no state that its Spare keeps for longer, however new its records are, and that one without
// Spare does.
func testSpare(t *testing.T, s store.Store) {
	a := applyingStore(t, s)
	series := *events
	series.Keep = 10 * series.Tile
	const each = 400 // so many that values are compacted several times
	now, offset := 1000*series.Tile, int64(0)
	write := func(spare int64) {
		t.Helper()
		progress, err := s.Progress(t.Context(), []state.Partition{transactions})
		if err != nil {
			t.Fatal(err)
		}
		b := &state.Batch{
			Ranges: []state.PartitionRange{{Partition: transactions, To: offset + 1, Epoch: -1, Progress: progress[0]}},
			Series: []*state.Series{&series}, Now: now, Spare: spare,
		}
		b.Update(0, offset, []byte("d"))
		b.Add(state.Mutation{Series: &series, Tile: 100 + offset%each, Num: 1}) // long before what is kept by now
		offset++
		if err := a.Apply(t.Context(), b); err != nil || b.Ranges[0].Behind {
			t.Fatalf("behind %v, error %v; want the event applied", b.Ranges[0].Behind, err)
		}
	}
	count := func() (n int64) {
		t.Helper()
		found, err := s.Read(t.Context(), []state.Read{{Series: &series, Entity: "d", First: 100, Last: 100 + each}})
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range found[0].Buckets {
			n += b.Value.Num
		}
		return n
	}
	for range each {
		write(now)
	}
	if n := count(); n != each {
		t.Errorf("%d of %d events remain, want all that are kept for longer", n, each)
	}
	for range each {
		write(0)
	}
	if n := count(); n >= 2*each {
		t.Errorf("all of %d events remain, want those pruned that are too old", n)
	}
}
