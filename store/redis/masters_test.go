package redisstore

import (
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
