package storetest

import (
	"cmp"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// claim takes a partition for the plan of a version.
func claim(t *testing.T, s store.Store, p state.Partition, version string, givesWayTo ...string) state.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), []state.Partition{p}, state.Claimant{Version: version, GivesWayTo: givesWayTo})
	if err != nil {
		t.Fatal(err)
	}
	return claims[0]
}

// expectClaim compares the position claimed in every shard.
func expectClaim(t *testing.T, what string, c state.Claim, want state.Position) {
	t.Helper()
	for shard, at := range c.Progress {
		if at != want || c.Misses(shard) != nil {
			t.Errorf("%s: claimed at %v in shard %d, missing %v; want %v", what, at, shard, c.Misses(shard), want)
		}
	}
}

// place places a partition in all shards, from one position to another.
func place(t *testing.T, s store.Store, want int, w state.Placement, from, to state.Position) {
	t.Helper()
	w.From, w.To = slices.Repeat([]state.Position{from}, s.Shards()), slices.Repeat([]state.Position{to}, s.Shards())
	if n, err := s.Place(t.Context(), w); err != nil || n != want {
		t.Errorf("%d shards were placed, error %v; want %d", n, err, want)
	}
}

// expectEpochs compares the epochs of the history.
func expectEpochs(t *testing.T, what string, s store.Store, want ...state.PlanEpoch) {
	t.Helper()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(h.PlanEpochs, func(a, b state.PlanEpoch) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Version, b.Version))
	})
	if diff := gocmp.Diff(want, h.PlanEpochs); diff != "" {
		t.Errorf("%s: the epochs differ (-want +got):\n%s", what, diff)
	}
}

func epochOf(version string, last int64) state.PlanEpoch {
	return state.PlanEpoch{Topic: transactions.Topic, Version: version, Last: last}
}

// move applies a batch without events that moves every shard, at a record's timestamp, and reports whether it was refused.
func move(t *testing.T, s store.Store, version string, from state.Position, to, timestamp int64) (behind bool) {
	t.Helper()
	b := &state.Batch{EveryShard: true, Now: timestamp, Ranges: []state.PartitionRange{{
		Partition: transactions.WithPlan(version), To: to, Epoch: 3, Progress: slices.Repeat([]state.Position{from}, s.Shards()),
	}}}
	if err := s.NewWriter().Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b.Ranges[0].Behind
}

// testClaims checks that a plan that claims a partition has it alone from then on, where the plan before left it, and that
// the history says until when that one was applied.
func testClaims(t *testing.T, open Open) {
	five := state.Position{Offset: 5, Epoch: -1}
	t.Run("no plan has it", func(t *testing.T) {
		s := open(2, 0)
		c := claim(t, s, transactions, "one")
		expectClaim(t, "at first", c, state.NoPosition)
		if c.OwnedMs != math.MaxInt64 || c.Topic != nil || c.KeptBy != "" {
			t.Errorf("claimed %+v, want no owner, and a topic that was never seen", c)
		}
		expectEpochs(t, "a claim alone", s)
	})
	t.Run("its topic is known", func(t *testing.T) {
		s, was, is := open(2, 0), state.LogID{Cluster: "c", Topic: "t1"}, state.LogID{Cluster: "c", Topic: "t2"}
		first, next := state.Position{Offset: 5, Epoch: -1, Log: was.Tag()}, state.Position{Epoch: -1, Log: is.Tag()}
		place(t, s, 2, state.Placement{Partition: transactions.WithPlan("one"), Log: was, Partitions: 6}, state.NoPosition, first)
		place(t, s, 2, state.Placement{Partition: transactions.WithPlan("one"), Log: is, Partitions: 9}, first, next)
		c := claim(t, s, state.Partition{Topic: transactions.Topic, ID: 7}, "one")
		if want := (state.FirstSeen{Log: is.Tag(), Partitions: 6}); c.Topic == nil || *c.Topic != want {
			t.Errorf("a partition that was added: claimed %+v, want the topic %+v", c, want)
		}
	})
	t.Run("it has it already", func(t *testing.T) {
		s := open(2, 0)
		place(t, s, 2, state.Placement{Partition: transactions.WithPlan("one")}, state.NoPosition, five)
		c := claim(t, s, transactions, "one")
		expectClaim(t, "its own", c, five)
		if c.OwnedMs > 60_000 || c.KeptBy != "" {
			t.Errorf("claimed %+v, want it owned since just now", c)
		}
		expectEpochs(t, "its own", s, epochOf("one", state.MaxTime))
	})
	t.Run("another plan has it", func(t *testing.T) {
		s := open(2, 0)
		place(t, s, 2, state.Placement{Partition: transactions.WithPlan("one")}, state.NoPosition, five)
		if move(t, s, "one", five, 10, 5000) {
			t.Fatal("the owner is refused")
		}
		ten := state.Position{Offset: 10, Epoch: 3}
		c := claim(t, s, transactions, "two")
		expectClaim(t, "another's", c, ten)
		if c.OwnedMs != 0 || c.KeptBy != "" {
			t.Errorf("claimed %+v, want it owned for no time", c)
		}
		expectEpochs(t, "another's", s, epochOf("one", 5000), epochOf("two", state.MaxTime))
		if !move(t, s, "one", ten, 12, 6000) {
			t.Error("a batch of the plan that has lost the partition was applied")
		}
		expectClaim(t, "after that batch", claim(t, s, transactions, "two"), ten)
		if move(t, s, "two", ten, 12, 6000) {
			t.Error("the new owner is refused")
		}
		claim(t, s, transactions, "one")
		expectEpochs(t, "back", s, epochOf("one", state.MaxTime), epochOf("two", 6000))
	})
	t.Run("another plan has it, to which it gives way", func(t *testing.T) {
		s := open(2, 0)
		place(t, s, 2, state.Placement{Partition: transactions.WithPlan("two")}, state.NoPosition, five)
		c := claim(t, s, transactions, "one", "two", "three")
		expectClaim(t, "a rival's", c, state.NoPosition)
		if c.KeptBy != "two" {
			t.Errorf("claimed %+v, want it kept by two", c)
		}
		expectEpochs(t, "a rival's", s, epochOf("two", state.MaxTime))
		c = claim(t, s, transactions, "two", "two") // a plan is no rival of its own
		expectClaim(t, "by the rival", c, five)
		c = claim(t, s, transactions, "one", "three")
		expectClaim(t, "of one that is no rival", c, five)
		if c.KeptBy != "" {
			t.Errorf("claimed %+v, want it kept by no other", c)
		}
	})
	t.Run("one shard is behind", func(t *testing.T) {
		s := open(2, 0)
		place(t, s, 2, state.Placement{Partition: transactions.WithPlan("one")}, state.NoPosition, five)
		restore := s.Save(0)
		claim(t, s, transactions, "two")
		restore()
		if !move(t, s, "two", five, 9, 1) {
			t.Error("a batch was applied to a shard in which another plan has the partition again")
		}
		restored := claim(t, s, transactions, "two")
		if restored.Progress[0] != five || restored.OwnedMs != 0 {
			t.Errorf("claimed again %+v, want offset 5 in the shard that went back", restored)
		}
	})
}
