package storetest

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// testOwned checks that a claim tells for how long its plan has had the partition, and the partition has been past its last
// gap.
func testOwned(t *testing.T, s Timed) {
	at := state.Position{Offset: 5, Epoch: -1}
	under := state.Placement{Partition: transactions.WithPlan("one")}
	place(t, s, 2, under, state.NoPosition, at)
	expect := func(what, version string, want time.Duration) {
		t.Helper()
		const tolerance = time.Minute
		owned := time.Duration(claim(t, s, transactions, version).OwnedMs) * time.Millisecond
		if owned < want || owned > want+tolerance {
			t.Errorf("%s: owned for %v, want %v", what, owned, want)
		}
	}
	s.Pass(time.Hour)
	expect("since its first position", "one", time.Hour)
	expect("taken by another plan", "two", 0)
	s.Pass(2 * time.Hour)
	expect("since it was taken", "two", 2*time.Hour)
	under.Gap = 1
	place(t, s, 2, under, at, state.Position{Offset: 6, Epoch: -1})
	expect("past a gap", "two", 0)
	s.Pass(-time.Hour)
	expect("by a clock that was set back", "two", 0)
}
