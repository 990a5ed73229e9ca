package window

import (
	"errors"
	"math"
	"time"

	"github.com/weir-stream/weir/state"
)

// Rolling is a window of one length that ends at the moment of the question. In tiles it ends with
// the tile of the moment.
type Rolling struct{ Size time.Duration }

func (r Rolling) String() string { return FormatDuration(r.Size) }

// Reach returns the window's length.
func (r Rolling) Reach() time.Duration { return r.Size }

func (r Rolling) begin(at, tile int64) int64 {
	return (state.FloorDiv(at, tile)+1)*tile - r.Size.Milliseconds()
}

// DefaultTile returns the tile width if none is chosen.
func (r Rolling) DefaultTile() time.Duration { return defaultTile(r.Size) }

// CheckTile returns what is wrong with a tile width, or nil.
func (r Rolling) CheckTile(tile time.Duration) error { return checkTile(r.Size, tile) }

// lifetime is the type of a window without a beginning.
type lifetime struct{}

func (lifetime) String() string { return "lifetime" }

func (lifetime) Reach() time.Duration { return 0 }

func (lifetime) begin(int64, int64) int64 { return math.MinInt64 }

// DefaultTile returns the tile width if none is chosen.
func (lifetime) DefaultTile() time.Duration { return 0 }

// CheckTile returns what is wrong with a tile width, or nil.
func (lifetime) CheckTile(tile time.Duration) error {
	if tile != 0 {
		return errors.New("tile does not apply to a lifetime, which has no tiles")
	}
	return nil
}
