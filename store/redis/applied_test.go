package redisstore

import (
	"testing"

	"github.com/weir-stream/weir/state"
)

// A record is applied for reads in shards that have passed it, under any plan.
func TestApplied(t *testing.T) {
	onEach(t, 8, func(t *testing.T, s *Store) {
		under := transactions.WithPlan("v1")
		check := func(what string, p state.Partition, offset int64, want bool, devices ...string) {
			t.Helper()
			var reads []state.Read
			for _, d := range devices {
				reads = append(reads, state.Read{Series: events, Entity: d})
			}
			if got, err := s.Applied(t.Context(), p, offset, reads); err != nil || got != want {
				t.Errorf("%s: %v %v, want %v", what, got, err, want)
			}
		}
		here, elsewhere := "d1", "d2"
		for s.shardOf(here) == s.shardOf(elsewhere) {
			elsewhere += "'"
		}

		check("no plan has the partition", under, 0, false, here)
		start(t, s, transactions)
		if _, err := s.Claim(t.Context(), []state.Partition{transactions}, "v1"); err != nil {
			t.Fatal(err)
		}
		check("before", under, 0, false, here)
		b := begin(t, s, under)
		fill(b, 0, event{offset: 4, device: here, user: "u1", time: 101 * day})
		apply(t, s.newWriter(), b)
		check("after", under, 4, true, here)
		check("an earlier one", under, 0, true, here)
		check("the next one", under, 5, false, here)
		check("in a shard that it does not touch", under, 4, false, elsewhere)
		check("in both", under, 4, false, here, elsewhere)
		check("in all", under, 4, false)
		check("under another plan", transactions.WithPlan("v2"), 4, true, here)
		check("in both, under another plan", transactions.WithPlan("v2"), 4, false, here, elsewhere)

		b = begin(t, s, under)
		b.EveryShard, b.Ranges[0].To = true, 5
		apply(t, s.newWriter(), b)
		check("in both, once all have moved", under, 4, true, here, elsewhere)
		check("in all, once all have moved", under, 4, true)
		check("another partition", state.Partition{Topic: transactions.Topic, ID: 7}.WithPlan("v1"), 0, false, here)
	})
}
