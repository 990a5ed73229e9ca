package window

import (
	"time"

	"github.com/weir-stream/weir/state"
)

// Tumbling is the one of windows of one length, which follow on each other from
// 1970-01-01T00:00Z, that holds the moment asked for, up to that moment.
type Tumbling struct{ Size time.Duration }

func (t Tumbling) String() string { return "tumbling " + FormatDuration(t.Size) }

// Reach is the windows' length.
func (t Tumbling) Reach() time.Duration { return t.Size }

func (t Tumbling) begin(at, _ int64) int64 {
	size := t.Size.Milliseconds()
	return state.FloorDiv(at, size) * size
}

// DefaultTile is the width of tiles where none is chosen.
func (t Tumbling) DefaultTile() time.Duration { return defaultTile(t.Size) }

// CheckTile says what is wrong with a width of tiles, nil for nothing.
func (t Tumbling) CheckTile(tile time.Duration) error { return checkTile(t.Size, tile) }
