package testkit

import (
	"testing"
	"time"
)

// pollInterval is short beside anything a server does, and long beside a
// condition that is cheap to ask.
const pollInterval = 10 * time.Millisecond

// Eventually asks a condition every few milliseconds until it holds, and
// fails the test when it does not within the deadline, with what was waited
// for and the last detail.
func Eventually(t testing.TB, deadline time.Duration, what string, condition func() (ok bool, detail string)) {
	t.Helper()
	if detail, ok := poll(deadline, condition); !ok {
		t.Fatalf("%s: not within %v; last seen: %s", what, deadline, detail)
	}
}

func poll(deadline time.Duration, condition func() (bool, string)) (detail string, ok bool) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	end := time.NewTimer(deadline)
	defer end.Stop()
	for {
		if ok, detail = condition(); ok {
			return detail, true
		}
		select {
		case <-ticker.C:
		case <-end.C:
			return detail, false
		}
	}
}
