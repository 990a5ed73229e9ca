package storetest

import (
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
)

// testPlansBack checks that no fill goes on forever once the plans, and nothing else, have gone back in time: fills that were
// registered after that moment are given up, or go on. Processes that knew the plans have ended by then.
func testPlansBack(t *testing.T, open Open) {
	begin := func(t *testing.T) (f *filling, back func()) {
		s := open(4, 0)
		f = newFilling(t, s)
		if _, err := s.Place(t.Context(), testkit.FirstPlacement(beside.WithPlan("v1"), s.Shards(), 30)); err != nil {
			t.Fatal(err)
		}
		restore := s.SavePlans()
		return f, func() {
			restore()
			f.store = s.Another()
			f.writer = f.store.NewWriter()
		}
	}
	t.Run("a plan is registered again, with another fill", func(t *testing.T) {
		f, back := begin(t)
		for _, less := range []*state.Series{added, more} {
			if _, err := f.store.Register(t.Context(), state.Registration{Plan: planOf("with "+less.ID, events, less)}); err != nil {
				t.Fatal(err)
			}
		}
		f.take("v2", events, added, more) // its series are two fills
		first, second := f.fill(added), f.fill(more)
		f.expectLeft(first, state.OffsetRange{To: 30})
		f.expectLeft(second, state.OffsetRange{To: 30})
		back()
		f.take("v2", events, added, more) // it has the partition already
		f.takeBeside("v2", events, added, more)
		both := f.fill(added, more)
		f.expectUnknown(both)
		f.expectEpoch(both, true)
		// Another plan that keeps them gives them up where that is still to be done.
		f.take("v3", events, added, more, most)
		f.expectGivenUp(first)
		f.expectGivenUp(second)
		f.expectGivenUp(both)
		f.expectEpoch(f.fill(most), false)
	})
	t.Run("the same plans are registered again", func(t *testing.T) {
		f, back := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		back()
		f.takeBeside("v1", events)
		f.take("v2", events, added)
		f.expectEpoch(fill, false)
		f.takeBeside("v2", events, added)
		f.expectEpoch(fill, false)
		f.start(fill, 0, 7)
		f.apply(fill, 0, 30, added)
		f.expectLeft(fill)
	})
}

// expectEpoch checks whether the history says that a fill can never be complete.
func (f *filling) expectEpoch(fill *state.Fill, broken bool) {
	f.Helper()
	history, err := f.store.History(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range history.Fills {
		if e.Fill.ID == fill.ID {
			if e.Broken != broken || e.Whole {
				f.Errorf("the fill %s is broken: %v, whole: %v; want %v, false", fill.ID, e.Broken, e.Whole, broken)
			}
			return
		}
	}
	f.Errorf("the history does not know the fill %s, but %+v", fill.ID, history.Fills)
}
