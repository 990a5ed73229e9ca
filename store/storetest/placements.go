package storetest

import (
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
)

// testPlacements checks that a placement changes only the shards in which the progress is as expected, and that they record
// the log, and the gap if records are missing.
func testPlacements(t *testing.T, open Open) {
	t.Run("only what is as expected", func(t *testing.T) {
		s, was, is := open(2, 0), state.LogID{Cluster: "c", Topic: "t1"}, state.LogID{Cluster: "c", Topic: "t2"}
		at := func(offset int64, id state.LogID) state.Position {
			return state.Position{Offset: offset, Epoch: -1, Log: id.Tag()}
		}
		set := func(want int, id state.LogID, from, to []state.Position) {
			t.Helper()
			n, err := s.Place(t.Context(), state.Placement{Partition: transactions.WithPlan("v"), From: from, To: to, Log: id, Partitions: 6})
			if err != nil || n != want {
				t.Errorf("%d shards were placed, error %v; want %d", n, err, want)
			}
		}
		set(2, was, []state.Position{state.NoPosition, state.NoPosition}, []state.Position{at(5, was), at(6, was)})
		set(1, is, []state.Position{at(5, was), at(7, was)}, []state.Position{at(0, is), at(0, is)})
		set(0, is, []state.Position{at(0, is), at(6, was)}, []state.Position{at(0, is), at(6, was)})
		place(t, s, 0, state.Placement{Partition: transactions.WithPlan("late")}, state.NoPosition, at(9, was))
		progress, err := s.Progress(t.Context(), []state.Partition{transactions})
		if want := []state.Position{at(0, is), at(6, was)}; err != nil || !slices.Equal(progress[0], want) {
			t.Errorf("the progress is %v, error %v; want %v", progress, err, want)
		}
		for _, id := range []state.LogID{was, is, {}} {
			if got, err := s.Log(t.Context(), id.Tag()); err != nil || got != id {
				t.Errorf("the log with the tag %q is %v, error %v; want %v", id.Tag(), got, err, id)
			}
		}
	})
	t.Run("with a gap", func(t *testing.T) {
		s := open(2, 0)
		five, ten := state.Position{Offset: 5, Epoch: -1}, state.Position{Offset: 10, Epoch: 3}
		under := state.Placement{Partition: transactions.WithPlan("one")}
		place(t, s, 2, under, state.NoPosition, five)
		move(t, s, "one", five, 10, 5000)
		under.Gap = 4000
		place(t, s, 2, under, ten, five)
		expectEpochs(t, "before the newest record", s, epochOf(state.Gap, 5000), epochOf("one", state.MaxTime))
		under.Gap = 8000
		place(t, s, 2, under, five, ten)
		expectEpochs(t, "after the newest record", s, epochOf(state.Gap, 8000), epochOf("one", state.MaxTime))
		under.Gap = 9000
		place(t, s, 0, under, five, ten)
		for _, until := range []int64{7000, 1000} {
			if err := s.Gap(t.Context(), transactions, until); err != nil {
				t.Fatal(err)
			}
		}
		expectEpochs(t, "of a placement that did not happen, and before the last gap", s, epochOf(state.Gap, 8000), epochOf("one", state.MaxTime))
	})
}
