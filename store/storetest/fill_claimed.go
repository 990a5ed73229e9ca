package storetest

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// openFrom is a range that has begun and not ended.
func openFrom(offset int64) state.OffsetRange {
	return state.OffsetRange{From: offset, To: state.MaxTime}
}

// expectRanges compares what a fill has to apply of the partition, in each shard. Without ranges, nothing is to be filled.
func (f *filling) expectRanges(fill *state.Fill, want ...state.OffsetRange) {
	f.Helper()
	for shard, found := range f.look(fill) {
		if !found.Known || found.Broken {
			f.Errorf("%s in shard %d is %+v, want the ranges %v", fill.ID, shard, found, want)
			continue
		}
		if len(found.Ranges) != len(want) {
			f.Errorf("%s has the ranges %v in shard %d, want %v", fill.ID, found.Ranges, shard, want)
			continue
		}
		for i, r := range found.Ranges {
			if r != want[i] {
				f.Errorf("%s has the ranges %v in shard %d, want %v", fill.ID, found.Ranges, shard, want)
			}
		}
	}
}

// expectGivenUp checks that a fill is given up for the partition in each shard.
func (f *filling) expectGivenUp(fill *state.Fill) {
	f.Helper()
	for shard, found := range f.look(fill) {
		if !found.Known || !found.Broken || found.Done() || len(found.Left()) > 0 {
			f.Errorf("%s in shard %d is %+v, want it given up", fill.ID, shard, found)
		}
	}
}

// expectUnknown checks that no shard has anything of a fill of the partition.
func (f *filling) expectUnknown(fill *state.Fill) {
	f.Helper()
	for shard, found := range f.look(fill) {
		if found.Known {
			f.Errorf("%s in shard %d is %+v, want nothing of it", fill.ID, shard, found)
		}
	}
}

// testFillClaimed checks that a claim leaves each fill with exactly the records that live events do not feed to it: the
// rows of the table in docs/definition-changes.md, "What is left to fill". A row about time is in testAway.
func testFillClaimed(t *testing.T, opened func() store.Store) {
	begin := func(t *testing.T) *filling { return newFilling(t, opened()) }
	t.Run("it has the fill and the plan before fed none of its series", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		f.expectRanges(f.fill(added), state.OffsetRange{To: 30})
		f.take("v2", events, added) // claimed again
		f.expectRanges(f.fill(added), state.OffsetRange{To: 30})
	})
	t.Run("it has the fill and the partition had no owner", func(t *testing.T) {
		f := &filling{T: t, store: opened()}
		f.know("v1", events)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.expectRanges(fill)
		for shard, found := range f.look(fill) {
			if !found.Begun || !found.Done() || found.Since != state.MinTime {
				t.Errorf("the fill in shard %d is %+v, want it done, since ever", shard, found)
			}
		}
	})
	t.Run("it has the fill and the partition had no owner until another plan placed it", func(t *testing.T) {
		f := &filling{T: t, store: opened()}
		f.know("v1", events)
		f.know("v2", events, added)
		for _, version := range []string{"v1", "v2"} { // both find no position
			expectClaim(t, version, claim(t, f.store, transactions, version), state.NoPosition)
		}
		place(t, f.store, 4, state.Placement{Partition: transactions.WithPlan("v1")}, state.NoPosition, state.Position{Epoch: -1})
		move(t, f.store, "v1", state.Position{Epoch: -1}, 20, 1)
		f.take("v2", events, added)
		f.expectGivenUp(f.fill(added))
	})
	t.Run("it lacks the fill", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.applyLive(40)
		f.take("v1", events)
		f.expectRanges(fill, state.OffsetRange{To: 30}, openFrom(40))
		f.applyLive(50)
		f.take("v3", events, more) // the range is open already
		f.expectRanges(fill, state.OffsetRange{To: 30}, openFrom(40))
		f.start(fill, 0, 7)
		f.apply(fill, 0, 30, added)
		if found := f.look(fill)[0]; found.Done() || found.Opened == 0 {
			t.Errorf("a fill with an open range is %+v, want it opened and not done", found)
		}
	})
	t.Run("it lacks the fill and the partition had no owner", func(t *testing.T) {
		f := &filling{T: t, store: opened()}
		f.know("v1", events)
		f.know("v2", events, added)
		f.take("v1", events)
		f.plan = planOf("v2", events, added)
		f.expectUnknown(f.fill(added))
	})
	t.Run("it has the fill again", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.take("v1", events)
		f.applyLive(40)
		f.take("v2", events, added)
		f.expectRanges(fill, state.OffsetRange{To: 30}, state.OffsetRange{From: 30, To: 40})
		f.take("v1", events)
		f.take("v2", events, added) // at once
		f.expectRanges(fill, state.OffsetRange{To: 30}, state.OffsetRange{From: 30, To: 40})
		if found := f.look(fill)[0]; found.Opened != 0 {
			t.Errorf("a fill without an open range has one since %d", found.Opened)
		}
	})
	t.Run("it has the fill again and the partition has gone back before the range", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.applyLive(40)
		f.take("v1", events)
		f.expectRanges(fill, state.OffsetRange{To: 30}, openFrom(40))
		f.place(func(at state.Position) state.Position { return at.Until(20) })
		f.take("v2", events, added)
		f.expectGivenUp(fill)
	})
	t.Run("it has a part of the fill", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added, more)
		fill := f.fill(added, more)
		f.start(fill, 0, 7)
		f.apply(fill, 0, 10, added, more)
		f.take("v3", events, added)
		f.expectGivenUp(fill)
		part := f.fill(added)
		f.expectRanges(part, state.OffsetRange{To: 30})
		for shard, found := range f.look(part) {
			if found.At.Offset != 10 || found.Since != 7 || !found.Begun {
				t.Errorf("the part in shard %d is %+v, want it to go on at 10, since 7", shard, found)
			}
		}
	})
	t.Run("another fill has all of its columns and more", func(t *testing.T) {
		f := begin(t)
		place(t, f.store, 4, state.Placement{Partition: beside.WithPlan("v1")}, state.NoPosition, state.Position{Offset: 30, Epoch: -1})
		f.takeBeside("v2", events, added, more)
		f.takeBeside("v3", events, added) // makes the part
		f.take("v2", events, added, more)
		whole := f.fill(added, more)
		f.expectRanges(whole, state.OffsetRange{To: 30})
		f.expectUnknown(f.fill(added))
	})
	t.Run("another fill of the same series", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added, more, most)
		f.take("v3", events, more, most)
		f.expectRanges(f.fill(more, most), state.OffsetRange{To: 30})
		f.take("v1", events)
		f.take("v4", events, added, more)
		f.expectGivenUp(f.fill(added, more))
	})
	t.Run("the plan before fed its series without a record of it", func(t *testing.T) {
		f := begin(t)
		f.know("v2", events, added)
		place(t, f.store, 4, state.Placement{Partition: beside.WithPlan("v2")}, state.NoPosition, state.Position{Offset: 30, Epoch: -1})
		f.takeBeside("v3", events, added, more)
		f.plan = planOf("v3", events, added, more)
		found, err := f.store.Fillings(t.Context(), f.fill(added), []state.Partition{beside})
		if err != nil {
			t.Fatal(err)
		}
		for shard, filling := range found[0] {
			if !filling.Broken {
				t.Errorf("the fill in shard %d is %+v, want it given up", shard, filling)
			}
		}
	})
	t.Run("the plan before is not known", func(t *testing.T) {
		f := &filling{T: t, store: opened()}
		place(t, f.store, 4, state.Placement{Partition: transactions.WithPlan("v0")}, state.NoPosition, state.Position{Offset: 30, Epoch: -1})
		f.know("v1", events)
		f.take("v2", events, added)
		f.expectGivenUp(f.fill(added))
	})
	t.Run("it is not known itself", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		claim(t, f.store, transactions, "v9")
		f.expectGivenUp(f.fill(added))
	})
	t.Run("it gives way", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		claim(t, f.store, transactions, "v1", "v2")
		f.expectRanges(f.fill(added), state.OffsetRange{To: 30})
	})
}

// know registers a plan that keeps some series.
func (f *filling) know(version string, series ...*state.Series) {
	f.Helper()
	if _, err := f.store.Register(f.Context(), state.Registration{Plan: planOf(version, series...)}); err != nil {
		f.Fatal(err)
	}
}
