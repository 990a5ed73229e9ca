package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
)

// untilServed waits until all masters are asked again.
func untilServed(t testing.TB, s *Store) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "all masters", func() (bool, string) {
		for _, m := range s.Unavailable(t.Context()) {
			return false, m.Err.Error()
		}
		return true, ""
	})
}

// Runs the breaker on the test's clock.
func TestBreaker(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	b := breaker{now: func() time.Time { return now }}
	refuses := func(want error) {
		t.Helper()
		if _, got := b.refusal(); !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Fatalf("calls are refused for %v, want %v", got, want)
		}
	}
	refuses(nil)
	if b.halfOpen() {
		t.Fatal("a closed breaker is probed")
	}
	hangs, stillHangs := errors.New("hangs"), errors.New("still hangs")
	if !b.failed(hangs) || b.failed(stillHangs) {
		t.Fatal("the first failure opens the breaker, and no other")
	}
	opened := now
	wait := firstProbe
	for range 6 {
		if got := b.untilProbe(); got != wait {
			t.Fatalf("%v until the next probe, want %v", got, wait)
		}
		now = now.Add(wait - time.Millisecond)
		if b.halfOpen() {
			t.Fatal("a probe before its time")
		}
		now = now.Add(time.Millisecond)
		if !b.halfOpen() || b.halfOpen() {
			t.Fatal("one probe is due, and only one")
		}
		if b.probed(stillHangs) {
			t.Fatal("a probe that failed closed the breaker")
		}
		refuses(stillHangs)
		wait = min(2*wait, longestProbe)
	}
	if since, _ := b.refusal(); !since.Equal(opened) {
		t.Errorf("open since %v, want %v", since, opened)
	}
	now = now.Add(longestProbe)
	if !b.halfOpen() {
		t.Fatal("no probe is due")
	}
	refuses(stillHangs) // while the probe is under way
	if !b.probed(nil) {
		t.Fatal("the probe that was answered did not close the breaker")
	}
	refuses(nil)
	if !b.failed(hangs) || b.untilProbe() != firstProbe {
		t.Error("the next time does not start over")
	}
}
