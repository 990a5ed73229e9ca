package window

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
)

// NiceTiles are the widths that a finding proposes.
var NiceTiles = []time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	Day, 2 * Day, 5 * Day, 7 * Day, 10 * Day, 15 * Day, 30 * Day,
}

// defaultTile returns one unit smaller than the window's: days for windows of several whole days, hours for one day,
// minutes for whole hours, seconds for whole minutes, and 100ms for whole seconds. Other windows have none: it is 0.
func defaultTile(window time.Duration) time.Duration {
	switch {
	case window == Day:
		return time.Hour
	case window%Day == 0:
		return Day
	case window%time.Hour == 0:
		return time.Minute
	case window%time.Minute == 0:
		return time.Second
	case window%time.Second == 0:
		return 100 * time.Millisecond
	default:
		return 0
	}
}

// checkTile returns what is wrong with a tile for a window, or nil.
func checkTile(window, tile time.Duration) error {
	w, t := FormatDuration(window), FormatDuration(tile)
	switch {
	case tile == 0:
		return fmt.Errorf("window %s is not in whole seconds and has no default tile; choose one that divides it, such as tile: %s",
			w, fitting(window, window/10))
	case tile > window:
		return fmt.Errorf("tile %s is wider than the window %s", t, w)
	case window%tile != 0:
		return fmt.Errorf("tile %s does not divide the window %s; the nearest that do: %s", t, w, fitting(window, tile))
	case window/tile > state.MaxTiles:
		return fmt.Errorf("window %s has %d tiles of %s, more than %d; choose a wider tile, such as tile: %s",
			w, window/tile, t, state.MaxTiles, fitting(window, window/1000))
	}
	return nil
}

// fitting returns the nearest tile widths below and above a width that divide the window.
func fitting(window, tile time.Duration) string {
	var below, above time.Duration
	for _, nice := range append(slices.Clip(NiceTiles), window) {
		switch {
		case window%nice != 0:
		case nice <= tile:
			below = nice
		case above == 0 || nice < above:
			above = nice
		}
	}
	switch {
	case below == 0:
		return FormatDuration(above)
	case above == 0:
		return FormatDuration(below)
	}
	return spelling.Alternatives([]string{FormatDuration(below), FormatDuration(above)})
}
