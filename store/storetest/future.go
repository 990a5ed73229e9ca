package storetest

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// farAhead and longAgo are timestamps of records, in ms.
const farAhead, longAgo = 4_000_000_000_000, 1_500_000_000_000

// lasts returns the ends of the epochs of a history, by topic and version.
func lasts(t *testing.T, s Namespace) map[string]int64 {
	t.Helper()
	h, err := s.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]int64{}
	for _, e := range h.PlanEpochs {
		last[e.Topic+"@"+e.Version] = e.Last
	}
	return last
}

// believer checks that moments are those up to which timestamps are believed, a day ahead of the clock.
func believer(t *testing.T, passed time.Duration) func(what string, at int64) {
	began := time.Now()
	return func(what string, at int64) {
		t.Helper()
		least, most := state.Believed(farAhead, began.Add(passed-time.Second)), state.Believed(farAhead, time.Now().Add(passed+time.Second))
		if at < least || at > most {
			t.Errorf("%s is %d, want a day ahead of the clock: %d to %d", what, at, least, most)
		}
	}
}

// testFuture checks that a record dated years ahead, or a gap, keeps features incomplete for no more than a day of the
// clock.
func testFuture(t *testing.T, s Namespace) {
	believed, start := believer(t, 0), state.Position{Epoch: -1}
	clock := func() int64 {
		t.Helper()
		now, err := s.Clock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	place(t, s, 2, state.Placement{Partition: transactions.WithPlan("one")}, state.NoPosition, start)
	move(t, s, "one", start, 1, farAhead)
	believed("the newest timestamp", clock())
	claim(t, s, transactions, "two")
	believed("the end of a plan", lasts(t, s)["transactions@one"])
	logins := state.Partition{Topic: "logins"}
	for _, gap := range []struct {
		p     state.Partition
		until int64
	}{{transactions, farAhead}, {logins, longAgo}} {
		if err := s.Gap(t.Context(), gap.p, gap.until); err != nil {
			t.Fatal(err)
		}
	}
	claim(t, s, logins, "two")
	last := lasts(t, s)
	believed("the end of a gap after the next claim", last["transactions@!"])
	if last["transactions@two"] != state.MaxTime {
		t.Errorf("the current plan ends at %d, want no end", last["transactions@two"])
	}
	believed("the newest timestamp after that", clock())
}

// testFutureLowered checks that timestamps that were believed by a clock that was ahead are lowered by the next claim, and
// that those of the past stay.
func testFutureLowered(t *testing.T, s Timed) {
	start, one := state.Position{Epoch: -1}, state.Position{Offset: 1, Epoch: 3}
	place(t, s, 2, state.Placement{Partition: transactions.WithPlan("zero")}, state.NoPosition, start)
	move(t, s, "zero", start, 1, longAgo)
	claim(t, s, transactions, "one")
	move(t, s, "one", one, 2, farAhead)
	const back = -48 * time.Hour
	s.Pass(back)
	believed := believer(t, back)
	claim(t, s, transactions, "two")
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	believed("the newest timestamp", now)
	last := lasts(t, s)
	believed("the end of the plan", last["transactions@one"])
	if last["transactions@zero"] != longAgo {
		t.Errorf("an end in the past was moved to %d", last["transactions@zero"])
	}
}
