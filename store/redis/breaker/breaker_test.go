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
			t.Fatalf("calls are refused for %v, want %v", got, want)
		}
	}
	refuses(nil)
	if b.HalfOpen() {
		t.Fatal("a closed breaker is probed")
	}
	hangs, stillHangs := errors.New("hangs"), errors.New("still hangs")
	if !b.Failed(hangs) || b.Failed(stillHangs) {
		t.Fatal("the first failure opens the breaker, and no other")
	}
	opened := now
	wait := firstProbe
	for range 6 {
		if got := b.UntilProbe(); got != wait {
			t.Fatalf("%v until the next probe, want %v", got, wait)
		}
		now = now.Add(wait - time.Millisecond)
		if b.HalfOpen() {
			t.Fatal("a probe before its time")
		}
		now = now.Add(time.Millisecond)
		if !b.HalfOpen() || b.HalfOpen() {
			t.Fatal("one probe is due, and only one")
		}
		if b.Probed(stillHangs) {
			t.Fatal("a probe that failed closed the breaker")
		}
		refuses(stillHangs)
		wait = min(2*wait, LongestProbe)
	}
	if since, _ := b.Refusal(); !since.Equal(opened) {
		t.Errorf("open since %v, want %v", since, opened)
	}
	now = now.Add(LongestProbe)
	if !b.HalfOpen() {
		t.Fatal("no probe is due")
	}
	refuses(stillHangs) // while the probe is under way
	if !b.Probed(nil) {
		t.Fatal("the probe that was answered did not close the breaker")
	}
	refuses(nil)
	if !b.Failed(hangs) || b.UntilProbe() != firstProbe {
		t.Error("the next time does not start over")
	}
}
