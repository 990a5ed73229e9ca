package storetest

import (
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// most is a third series that is added later.
var most = &state.Series{ID: "most1", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 20 * day, GroupKeep: 21 * day}

// beside is a partition that other processors apply, with other definitions.
var beside = state.Partition{Topic: transactions.Topic, ID: transactions.ID + 1}

// testParts checks that fills stay unchanged, and apply nothing twice, while plans that keep different parts of them
// have the partitions at the same time.
func testParts(t *testing.T, open func() store.Store) {
	begin := func(t *testing.T) *filling {
		f := newFilling(t, open())
		if _, err := f.store.Place(t.Context(), testkit.FirstPlacement(beside.WithPlan("v1"), f.store.Shards(), 30)); err != nil {
			t.Fatal(err)
		}
		return f
	}
	t.Run("partitions come to a part by different ways", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added, more, most)
		f.takeBeside("v2", events, added, more, most)
		fill := f.fill(added, more, most)
		f.start(fill, 0, 1)
		f.apply(fill, 0, 30, added, more, most)
		if err := f.store.StartFill(t.Context(), state.FillStart{Fill: fill, Partition: beside, From: 30, Since: 1, Log: "log"}); err != nil {
			t.Fatal(err)
		}
		f.take("v3", events, added, more)
		f.expectSince(added, 1)
		f.take("v4", events, added)
		f.expectSince(added, 1)
		f.takeBeside("v4", events, added)
		f.expectSince(added, 1)
	})
	t.Run("a part that was made of another part", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added, more, most)
		f.take("v1", events)
		f.applyLive(40)
		f.takeBeside("v3", events, added, more)
		f.take("v4", events, added)
		f.expectOnce(state.OffsetRange{To: 30}, state.OffsetRange{From: 30, To: 40})
	})
	t.Run("a part, where a plan has all", func(t *testing.T) {
		f := begin(t)
		f.takeBeside("v2", events, added, more)
		f.takeBeside("v3", events, added)
		f.take("v2", events, added, more)
		f.expectOnce(state.OffsetRange{To: 30})
		f.take("v3", events, added)
		f.expectOnce(state.OffsetRange{To: 30})
	})
	t.Run("parts that overlap", func(t *testing.T) {
		f := begin(t)
		f.takeBeside("v2", events, added, more, most)
		f.takeBeside("v3", events, added, more)
		f.take("v4", events, more, most)
		f.take("v1", events)
		f.applyLive(40)
		f.take("v2", events, added, more, most)
		f.expectOnce(state.OffsetRange{To: 30}, state.OffsetRange{From: 30, To: 40})
	})
}

// takeBeside takes the other partition for a plan that keeps some series.
func (f *filling) takeBeside(version string, series ...*state.Series) {
	f.Helper()
	if _, err := f.store.Register(f.Context(), state.Registration{Plan: planOf(version, series...)}); err != nil {
		f.Fatal(err)
	}
	if _, err := f.store.Claim(f.Context(), []state.Partition{beside}, state.Claimant{Version: version}); err != nil {
		f.Fatal(err)
	}
}

// expectOnce compares what all fills of the plan have left to fill in each shard: no record twice.
func (f *filling) expectOnce(want ...state.OffsetRange) {
	f.Helper()
	fills, err := f.store.Fills(f.Context(), f.plan)
	if err != nil {
		f.Fatal(err)
	}
	for shard := range f.store.Shards() {
		var left []state.OffsetRange
		for _, fill := range fills {
			filling := f.look(fill)[shard]
			left = append(left, filling.Left()...)
		}
		if len(left) != len(want) {
			f.Errorf("shard %d has the offset ranges %v left, want %v", shard, left, want)
			continue
		}
		for i := range want {
			if left[i] != want[i] {
				f.Errorf("shard %d has the offset ranges %v left, want %v", shard, left, want)
			}
		}
	}
}
