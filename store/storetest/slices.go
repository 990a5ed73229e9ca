package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testSlices checks shards of which some slices are ahead: an interrupted batch leaves them so.
func testSlices(t *testing.T, open func() store.Store) {
	const ahead = 20                                                     // slices
	low, high := ^state.SliceSet(1<<ahead-1), state.SliceSet(1<<ahead-1) // what the lower slices, and the others, are without
	begin := func(t *testing.T) *filling { return newFilling(t, open()) }
	t.Run("the others catch up", func(t *testing.T) {
		f := begin(t)
		f.skipAhead(40, ahead)
		for _, to := range []int64{33, 39, 60} {
			f.applyLive(to)
			f.expectCount(events, 30+count(30, to, high)+count(40, to, low))
		}
		for shard, at := range f.live {
			if at.Offset != 60 || at.Slices != 0 {
				t.Errorf("shard %d is at %v", shard, at)
			}
		}
	})
	t.Run("another plan takes the partition", func(t *testing.T) {
		f := begin(t)
		f.skipAhead(40, ahead)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.expectLeft(fill, state.OffsetRange{To: 40, Without: low}, state.OffsetRange{To: 30, Without: high})
		f.applyLive(35)
		f.start(fill, 0, 7)
		f.apply(fill, 0, 30, added)
		f.expectLeft(fill, state.OffsetRange{From: 30, To: 40, Without: low})
		f.expectSince(added, 100*day+31)
		f.applyLive(50)
		f.applyWithout(fill, 30, 40, low, added)
		f.expectLeft(fill)
		f.expectCount(added, 50)
		f.expectSince(added, 7)
	})
	t.Run("another plan has the partition for a while", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.start(fill, 0, 7)
		f.apply(fill, 0, 30, added)
		f.applyLive(40)
		f.skipAhead(50, ahead)
		f.take("v1", events)
		f.applyLive(45) // less far than the slices ahead
		f.take("v2", events, added)
		f.expectLeft(fill, state.OffsetRange{From: 40, To: 45, Without: high})
		f.take("v1", events)
		f.applyLive(60)
		f.take("v2", events, added)
		f.expectLeft(fill, state.OffsetRange{From: 40, To: 45, Without: high},
			state.OffsetRange{From: 50, To: 60, Without: low}, state.OffsetRange{From: 45, To: 60, Without: high})
		f.applyLive(70)
		f.applyWithout(fill, 40, 50, high, added)
		f.apply(fill, 50, 60, added)
		f.expectLeft(fill)
		f.expectCount(added, 70-count(40, 50, low))
		f.expectSince(added, 7)
	})
	t.Run("another plan takes the partition twice before they have caught up", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.start(fill, 0, 7)
		f.apply(fill, 0, 30, added)
		f.take("v1", events)
		f.skipAhead(50, ahead)
		f.take("v2", events, added)
		f.expectLeft(fill, state.OffsetRange{From: 30, To: 50, Without: low})
		f.applyWithout(fill, 30, 50, low, added)
		f.take("v1", events)
		f.take("v2", events, added) // at once
		f.expectLeft(fill)
		f.take("v1", events)
		f.applyLive(60) // of the slices that were behind, more is to be filled than what comes after the fill's position
		f.take("v2", events, added)
		f.expectGivenUp(fill)
	})
	t.Run("the partition goes back", func(t *testing.T) {
		f := begin(t)
		f.skipAhead(40, ahead)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.start(fill, 0, 7)
		f.place(func(at state.Position) state.Position { return at.Until(35) }) // its log was truncated
		if filling := f.look(fill)[0]; !filling.Broken {
			t.Errorf("a fill continues although slices have gone back: %+v", filling)
		}
		f.applyLive(50)
		f.expectCount(events, 30+count(30, 50, high)+count(35, 50, low))
	})
	for name, filled := range map[string]bool{"a fill that is done outlives that": true, "a fill that lacks some slices does not": false} {
		t.Run(name, func(t *testing.T) {
			f := begin(t)
			f.skipAhead(40, ahead)
			f.take("v2", events, added)
			fill := f.fill(added)
			f.start(fill, 0, 7)
			f.apply(fill, 0, 30, added)
			if filled {
				f.applyWithout(fill, 30, 40, low, added)
			}
			f.place(func(at state.Position) state.Position { return at.Until(20) })
			for shard, filling := range f.look(fill) {
				if filling.Broken == filled || filling.Done() != filled {
					t.Errorf("the fill in shard %d is %+v", shard, filling)
				}
			}
		})
	}
}

// count counts the records from one offset up to, but excluding, another, except those of devices in some slices.
func count(from, to int64, without state.SliceSet) (n int64) {
	for offset := from; offset < to; offset++ {
		if !without.Has(state.SliceOf(state.EntityHash(deviceAt(offset)))) {
			n++
		}
	}
	return n
}

// deviceAt returns the device of the record at an offset.
func deviceAt(offset int64) []byte { return fmt.Appendf(nil, "d%d", offset%devices) }

// skipAhead places the slices below a number ahead, at an offset.
func (f *filling) skipAhead(offset int64, slices int) {
	f.Helper()
	f.place(func(at state.Position) state.Position { return at.WithAhead(offset, slices) })
}

// place changes the position of the partition in each shard.
func (f *filling) place(change func(at state.Position) state.Position) {
	f.Helper()
	f.placeIn(state.LogID{}, change)
}

// placeIn places the partition in a log.
func (f *filling) placeIn(log state.LogID, change func(at state.Position) state.Position) {
	f.Helper()
	to := slices.Clone(f.live)
	for shard := range to {
		to[shard] = change(to[shard])
	}
	n, err := f.store.Place(f.Context(), state.Placement{Partition: f.at, From: f.live, To: to, Log: log, Partitions: 1})
	if err != nil || n != len(to) {
		f.Fatalf("%d shards were placed: %v", n, err)
	}
	f.live = to
}

// applyWithout fills records, except those of some slices.
func (f *filling) applyWithout(fill *state.Fill, from, to int64, without state.SliceSet, series ...*state.Series) {
	f.Helper()
	var progress []state.Position
	for _, filling := range f.look(fill) {
		progress = append(progress, filling.At)
	}
	b := f.batch(fill.Partition(transactions), progress, from, to, series...)
	b.Ranges[0].Without = slices.Repeat([]state.SliceSet{without}, len(progress))
	f.applyBatch(b)
}
