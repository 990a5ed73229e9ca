package window

import (
	"fmt"
	"time"
)

// LocalDays is a rolling window of whole days on the clocks of a time zone: the day of the moment of the question and
// those before it, Days in all. A day begins as that of a Calendar does.
type LocalDays struct {
	Days int
	day  Calendar
}

// NewLocalDays makes a window of some days.
func NewLocalDays(days int, zone *time.Location) LocalDays {
	return LocalDays{days, NewCalendar("day", zone, time.Monday)}
}

// Day returns the calendar of its days.
func (l LocalDays) Day() Calendar { return l.day }

func (l LocalDays) String() string {
	return fmt.Sprintf("%dd tz %s", l.Days, l.day.Zone)
}

// Reach returns the greatest length of the window.
func (l LocalDays) Reach() time.Duration { return time.Duration(l.Days-1)*Day + l.day.longest }

func (l LocalDays) begin(at, tile int64) int64 {
	today := time.UnixMilli(l.day.begin(at, tile)).In(l.day.Zone)
	const noon = 12 // which no clock change skips, but for whole days
	first := time.Date(today.Year(), today.Month(), today.Day()-l.Days+1, noon, 0, 0, 0, l.day.Zone)
	return l.day.begin(first.UnixMilli(), tile)
}

// DefaultTile returns the tile width if none is chosen.
func (l LocalDays) DefaultTile() time.Duration { return l.day.DefaultTile() }

// CheckTile returns what is wrong with a tile width, or nil.
func (l LocalDays) CheckTile(tile time.Duration) error { return l.day.checkTile(tile, l) }
