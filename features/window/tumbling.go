package window

import (
	"time"

	"github.com/weir-stream/weir/state"
)

// Tumbling is the current one of consecutive windows of one length, which start at
// 1970-01-01T00:00Z, up to the moment of the question.
type Tumbling struct{ Size time.Duration }

func (t Tumbling) String() string { return "tumbling " + FormatDuration(t.Size) }

// Reach returns the windows' length.
func (t Tumbling) Reach() time.Duration { return t.Size }

func (t Tumbling) begin(at, _ int64) int64 {
	size := t.Size.Milliseconds()
	return state.FloorDiv(at, size) * size
}

// DefaultTile returns the tile width if none is chosen.
func (t Tumbling) DefaultTile() time.Duration { return defaultTile(t.Size) }

// CheckTile returns what is wrong with a tile width, or nil.
func (t Tumbling) CheckTile(tile time.Duration) error { return checkTile(t.Size, tile) }
