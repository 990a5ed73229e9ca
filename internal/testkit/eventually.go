package testkit

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Eventually checks a condition every few milliseconds until it holds. At the deadline it fails the
// test with the description and the last detail.
func Eventually(t testing.TB, deadline time.Duration, what string, condition func() (ok bool, detail string)) {
	t.Helper()
	if detail, ok := server.Poll(deadline, condition); !ok {
		t.Fatalf("%s: did not happen within %v; last seen: %s", what, deadline, detail)
	}
}
