package breaker

import (
	"errors"
	"testing"
	"time"
)

// The breaker runs on the test's clock.
func TestBreaker(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	b := Breaker{Now: func() time.Time { return now }}
	refuses := func(want error) {
		t.Helper()
		if _, got := b.Refusal(); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Fatalf("calls are refused with %v, want %v", got, want)
		}
	}
	refuses(nil)
	if b.HalfOpen() {
		t.Fatal("a closed breaker lets a probe through")
	}
	hangs, stillHangs := errors.New("hangs"), errors.New("still hangs")
	if !b.Failed(hangs) || b.Failed(stillHangs) {
		t.Fatal("the first failure, and only the first, must open the breaker")
	}
	opened := now
	wait := firstProbe
	for range 6 {
		if got := b.UntilProbe(); got != wait {
			t.Fatalf("the next probe is in %v, want %v", got, wait)
		}
		now = now.Add(wait - time.Millisecond)
		if b.HalfOpen() {
			t.Fatal("a probe was let through before its time")
		}
		now = now.Add(time.Millisecond)
		if !b.HalfOpen() || b.HalfOpen() {
			t.Fatal("exactly one probe must be let through")
		}
		if b.Probed(stillHangs) {
			t.Fatal("a failed probe has closed the breaker")
		}
		refuses(stillHangs)
		wait = min(2*wait, LongestProbe)
	}
	if since, _ := b.Refusal(); !since.Equal(opened) {
		t.Errorf("the breaker is open since %v, want %v", since, opened)
	}
	now = now.Add(LongestProbe)
	if !b.HalfOpen() {
		t.Fatal("no probe was let through after the wait")
	}
	refuses(stillHangs) // while the probe is under way
	if !b.Probed(nil) {
		t.Fatal("a successful probe did not close the breaker")
	}
	refuses(nil)
	if !b.Failed(hangs) || b.UntilProbe() != firstProbe {
		t.Error("after closing, the next failure does not begin with the first wait")
	}
}
