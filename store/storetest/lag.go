package storetest

import (
	"testing"
	"time"
)

// testLag checks that the history has the least time by which records were behind the clock when they were applied.
func testLag(t *testing.T, s Namespace) {
	o := newOwner(t, s, "v1")
	least := func() *int64 {
		t.Helper()
		h, err := s.History(t.Context())
		if err != nil || h.Slack <= 0 {
			t.Fatalf("the history is %+v, error %v; want a slack", h, err)
		}
		return h.Lag
	}
	if lag := least(); lag != nil {
		t.Errorf("a new namespace has a least lag of %d ms, want none", *lag)
	}
	const day, minute = 24 * time.Hour, time.Minute
	for _, step := range []struct{ behind, want time.Duration }{{100 * day, 100 * day}, {day, day}, {2 * day, day}, {minute, minute}, {-minute, 0}, {day, 0}} {
		b := o.batch(o.progress[0].Offset, o.progress[0].Offset+1)
		b.EveryShard, b.Now = true, time.Now().Add(-step.behind).UnixMilli()
		o.apply(b)
		o.look()
		lag := least()
		if lag == nil {
			t.Fatalf("after a record %v behind the clock there is no least lag, want %v", step.behind, step.want)
		}
		if got := time.Duration(*lag) * time.Millisecond; got < step.want-time.Millisecond || got > step.want+minute/2 {
			t.Errorf("after a record %v behind the clock the least lag is %v, want %v", step.behind, got, step.want)
		}
	}
}

// testLagGrows checks that a lag that grows does not change the least one.
func testLagGrows(t *testing.T, s Timed) {
	o := newOwner(t, s, "v1")
	began := time.Now()
	for _, step := range []struct{ at, behind, want time.Duration }{
		{0, 2 * time.Hour, 2 * time.Hour}, {5 * time.Hour, 3 * time.Hour, 2 * time.Hour}, {5 * time.Hour, time.Hour, time.Hour},
	} {
		s.Pass(step.at)
		began = began.Add(step.at)
		b := o.batch(o.progress[0].Offset, o.progress[0].Offset+1)
		b.EveryShard, b.Now = true, began.Add(-step.behind).UnixMilli()
		o.apply(b)
		o.look()
		h, err := s.History(t.Context())
		if err != nil || h.Lag == nil {
			t.Fatalf("the history is %+v, error %v; want a least lag", h, err)
		}
		if got := time.Duration(*h.Lag) * time.Millisecond; got < step.want || got > step.want+time.Minute {
			t.Errorf("after a record %v behind the clock the least lag is %v, want %v", step.behind, got, step.want)
		}
	}
}
