package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/weir-stream/weir/internal/embedded"
)

// Embedded starts a Redis server inside the test's process.
func Embedded(t testing.TB) *miniredis.Miniredis {
	t.Helper()
	m, err := embedded.Redis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}
