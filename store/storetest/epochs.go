package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
)

// testEpochs checks that of more than 64 past plans of a topic the earliest become a gap, which reports too much as missing
// rather than too little.
func testEpochs(t *testing.T, s Namespace) {
	const most, plans = 64, 70
	at := state.Position{Offset: 0, Epoch: -1}
	place(t, s, 1, state.Placement{Partition: transactions.WithPlan("v0")}, state.NoPosition, at)
	want := []state.PlanEpoch{epochOf(state.Gap, 1000+plans-most-1), epochOf(fmt.Sprint("v", plans), state.MaxTime)}
	for n := range int64(plans) {
		if move(t, s, fmt.Sprint("v", n), at, n+1, 1000+n) {
			t.Fatal("the owner is refused")
		}
		claim(t, s, transactions, fmt.Sprint("v", n+1))
		at = state.Position{Offset: n + 1, Epoch: 3}
		if n >= plans-most {
			want = append(want, epochOf(fmt.Sprint("v", n), 1000+n))
		}
		if n == most-1 {
			h, err := s.History(t.Context())
			if err != nil || slices.ContainsFunc(h.PlanEpochs, func(e state.PlanEpoch) bool { return e.Version == state.Gap }) {
				t.Errorf("%d past plans: the history is %+v, error %v; want no gap", most, h.PlanEpochs, err)
			}
		}
	}
	slices.SortFunc(want, func(a, b state.PlanEpoch) int { return cmp.Compare(a.Version, b.Version) })
	expectEpochs(t, "many plans", s, want...)
}
