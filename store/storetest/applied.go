package storetest

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/state"
)

// testApplied checks that a record is applied for reads in shards that have passed it, under any plan.
func testApplied(t *testing.T, s Namespace) {
	o := newOwner(t, s, "v1")
	shard := func(device string) int {
		return s.ShardOf(&state.EntityUpdate{Entity: []byte(device), Hash: state.EntityHash([]byte(device))}, s.Shards())
	}
	here, elsewhere := "d4", "d1"
	for n := 0; shard(here) == shard(elsewhere); n++ {
		elsewhere = fmt.Sprint("d", n)
	}
	check := func(what string, p state.Partition, offset int64, want bool, devices ...string) {
		t.Helper()
		var reads []state.Read
		for _, d := range devices {
			reads = append(reads, state.Read{Series: events, Entity: d})
		}
		if got, err := s.Applied(t.Context(), p, offset, reads); err != nil || got != want {
			t.Errorf("%s: applied %v, error %v; want %v", what, got, err, want)
		}
	}
	check("before", o.at, 0, false, here)
	o.apply(o.batch(4, 5))
	check("after", o.at, 4, true, here)
	check("an earlier one", o.at, 0, true, here)
	check("the next one", o.at, 5, false, here)
	check("in a shard that it does not touch", o.at, 4, false, elsewhere)
	check("in both", o.at, 4, false, here, elsewhere)
	check("in all", o.at, 4, false)
	check("under another plan", transactions.WithPlan("v2"), 4, true, here)
	check("in both, under another plan", transactions.WithPlan("v2"), 4, false, here, elsewhere)
	o.look()
	b := o.batch(5, 5)
	b.EveryShard = true
	o.apply(b)
	check("in both, once all have moved", o.at, 4, true, here, elsewhere)
	check("in all, once all have moved", o.at, 4, true)
	check("another partition", beside, 0, false, here)
}
