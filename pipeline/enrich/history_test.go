package enrich

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// The newest record is that of any process, but none of the future.
func TestNewestKnown(t *testing.T) {
	for name, c := range map[string]struct{ history, own, want int64 }{
		"of another process":   {700, 500, 700},
		"of this process":      {500, 700, 700},
		"none of this process": {500, state.MinTime, 500},
		"none":                 {0, state.MinTime, 0},
		"from the future":      {state.MaxTime, 500, 1000},
	} {
		var k known
		k.look(&state.History{Newest: c.history}, time.UnixMilli(1000), c.own)
		if k.newest != c.want {
			t.Errorf("%s: got %d, want %d", name, k.newest, c.want)
		}
	}
}
