package storetest

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testFillOwn checks a fill of a partition that plans with its series have applied from the first record on, until a plan
// without them had it for a while: only what that plan applied is filled.
func testFillOwn(t *testing.T, open func() store.Store) {
	begin := func(t *testing.T) (*filling, *state.Fill) {
		f := &filling{T: t, store: open()}
		f.writer = f.store.NewWriter()
		// Only a plan that is not the first has fills.
		if _, err := f.store.Register(t.Context(), state.Registration{Plan: planOf("v1", events)}); err != nil {
			t.Fatal(err)
		}
		f.take("v2", events, added)
		return f, f.fill(added)
	}
	t.Run("of records", func(t *testing.T) {
		f, fill := begin(t)
		f.applyLive(30)
		f.take("v1", events)
		f.applyLive(50)
		f.take("v2", events, added)
		f.expectLeft(fill, state.OffsetRange{From: 30, To: 50})
		f.expectSince(added, 100*day+51)
		f.applyLive(60)
		f.apply(fill, 30, 50, added)
		f.expectLeft(fill)
		f.expectCount(added, 60)
		f.expectSince(added, state.MinTime)
	})
	t.Run("from the first record on", func(t *testing.T) {
		f, fill := begin(t)
		f.take("v1", events)
		f.applyLive(20)
		f.take("v2", events, added)
		f.apply(fill, 0, 20, added)
		f.expectLeft(fill)
		f.expectCount(added, 20)
	})
	t.Run("after slices that were ahead", func(t *testing.T) {
		const ahead = 20
		low, high := ^state.SliceSet(1<<ahead-1), state.SliceSet(1<<ahead-1) // see testSlices
		f, fill := begin(t)
		f.applyLive(30)
		f.skipAhead(40, ahead)
		f.take("v1", events)
		f.applyLive(50)
		f.take("v2", events, added)
		f.expectLeft(fill, state.OffsetRange{From: 40, To: 50, Without: low}, state.OffsetRange{From: 30, To: 50, Without: high})
		f.applyWithout(fill, 30, 40, high, added)
		f.apply(fill, 40, 50, added)
		f.expectLeft(fill)
		f.expectCount(added, 30+count(30, 40, high)+10)
	})
}

// testNoPosition checks that a range without a position in the store is not applied.
func testNoPosition(t *testing.T, open func() store.Store) {
	f := newFilling(t, open())
	f.take("v2", events, added)
	progress := make([]state.Position, f.store.Shards())
	for shard := range progress {
		progress[shard] = state.NoPosition
	}
	if !f.applyBatch(f.batch(f.fill(added).Partition(transactions), progress, 0, 30, added)) {
		t.Error("a range without a position is not marked Behind")
	}
	f.expectCount(added, 0)
}
