package backfill

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// Once the plans have gone back in time, a plan that has a partition may be registered again with another fill, which the partition
// does not know. That fill ends, and says which partitions were given up.
func TestFillsOfLostPlansEnd(t *testing.T) {
	k := keepingSome(t, "a")
	back := k.store.SavePlans()
	less, _, err := k.store.Bind(t.Context(), lifetimes(t, "a", "b").Plan())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.Register(t.Context(), state.Registration{Plan: less}); err != nil { // it claims nothing
		t.Fatal(err)
	}
	plan := k.take("a", "b", "c") // with a fill of b and one of c
	back()
	k.store = k.store.Another().(*plain.Store)                                               // a process that has not read the plans before
	if _, err := k.store.Register(t.Context(), state.Registration{Plan: plan}); err != nil { // with one of both
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		fills := map[string]int{}
		New(Config{Store: k.store, Transport: &kafka.Transport{}}).Run(t.Context(), Work{
			Registry: lifetimes(t, "a", "b", "c"), Partitions: func() []state.Partition { return []state.Partition{k.partition} },
			Until: func(f *state.Fill, p Progress) bool {
				fills[f.ID]++
				if p.Done || !slices.Equal(p.Broken, []state.Partition{k.partition}) {
					t.Errorf("the fill of %v is done: %v, and given up for %v; want it given up for %v", f.Columns, p.Done, p.Broken, k.partition)
				}
				return true
			},
		})
		if len(fills) != 1 {
			t.Errorf("the fills %v were worked on, want one", fills)
		}
	})
	b, err := Bind(t.Context(), k.store, lifetimes(t, "a", "b", "c"))
	if err != nil {
		t.Fatal(err)
	}
	if bound := b.Registry.Plan(); bound.Version == plan.Version {
		t.Errorf("the definitions are bound to the plan %s again, want one with another generation of b and c", bound.Version)
	}
}
