package window

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/state"
)

// Calendar is the window since the beginning of the hour, day, week, month, quarter or year on the clocks of a time
// zone at the moment of the question. If clocks are put back across midnight, the day begins with the first midnight.
// An hour that is shown twice begins twice. If clocks are put forward across a beginning, the window begins with that
// change.
type Calendar struct {
	Unit string
	Zone *time.Location
	// First is the first day of a week.
	First time.Weekday

	// grid is the greatest duration such that all windows begin at a multiple of it, longest the
	// greatest length of a window; see survey.
	grid, longest time.Duration
}

// CalendarUnits are the units, each with the greatest duration that divides all its windows, its
// greatest length without a clock change, and its default tile width.
var CalendarUnits = map[string]struct{ part, longest, tile time.Duration }{
	"hour":    {time.Hour, time.Hour, time.Minute},
	"day":     {Day, Day, time.Hour},
	"week":    {Day, 7 * Day, Day},
	"month":   {Day, 31 * Day, Day},
	"quarter": {Day, 92 * Day, Day},
	"year":    {Day, 366 * Day, Day},
}

// Weekdays are the names of the days that a week can begin with.
var Weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// NewCalendar makes the windows of a unit, one of CalendarUnits.
func NewCalendar(unit string, zone *time.Location, first time.Weekday) Calendar {
	c := Calendar{Unit: unit, Zone: zone, First: first}
	c.survey()
	return c
}

func (c Calendar) String() string {
	text := "calendar " + c.Unit + " tz " + c.Zone.String()
	if c.Unit == "week" && c.First != time.Monday {
		text += " starts " + Weekdays[c.First]
	}
	return text
}

// Reach returns the greatest length of a window.
func (c Calendar) Reach() time.Duration { return c.longest }

func (c Calendar) begin(at, _ int64) int64 {
	for {
		t := time.UnixMilli(at).In(c.Zone)
		unit := c.floor(wallClock(t))
		opening := unit - offset(t)
		changed, _ := t.ZoneBounds()
		if changed.IsZero() || c.Unit == "hour" && opening >= changed.UnixMilli() {
			return opening
		}
		before := changed.Add(-time.Millisecond)
		if c.floor(wallClock(before)) < unit {
			return max(opening, changed.UnixMilli())
		}
		// The unit began before the last clock change.
		at = before.UnixMilli()
	}
}

// offset returns how far a time's clock is ahead of UTC, in milliseconds.
func offset(t time.Time) int64 {
	_, seconds := t.Zone()
	return int64(seconds) * 1000
}

// wallClock returns the time that a zone's clock shows, as milliseconds since it showed the beginning of 1970.
func wallClock(t time.Time) int64 { return t.UnixMilli() + offset(t) }

// floor returns the beginning of the unit that contains a wall clock time.
func (c Calendar) floor(wall int64) int64 {
	const hour, dayLong = int64(time.Hour / time.Millisecond), int64(Day / time.Millisecond)
	switch c.Unit {
	case "hour":
		return state.FloorDiv(wall, hour) * hour
	case "week":
		// 1970 began on a Thursday.
		days := state.FloorDiv(wall, dayLong)
		return (state.FloorDiv(days+int64(time.Thursday-c.First), 7)*7 - int64(time.Thursday-c.First)) * dayLong
	case "month":
		return floorMonths(wall, 1)
	case "quarter":
		return floorMonths(wall, 3)
	case "year":
		return floorMonths(wall, 12)
	default:
		return state.FloorDiv(wall, dayLong) * dayLong
	}
}

// floorMonths returns the beginning of the months that belong together, counted from January.
func floorMonths(wall int64, together int) int64 {
	t := time.UnixMilli(wall).UTC()
	first := (int(t.Month())-1)/together*together + 1
	return time.Date(t.Year(), time.Month(first), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}

// survey computes grid and longest from all clock changes of the zone from 1970 to 2100.
func (c *Calendar) survey() {
	unit := CalendarUnits[c.Unit]
	c.grid, c.longest = unit.part, unit.longest
	end := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := time.Unix(0, 0).In(c.Zone); t.Before(end); {
		c.grid = divisor(c.grid, Milliseconds(offset(t)))
		_, changed := t.ZoneBounds()
		switch {
		case changed.IsZero():
			return
		case !changed.After(t):
			// The last day of a leap year is said to end before it has begun.
			changed = t.Add(Day)
		case offset(changed) != offset(t) && c.begin(changed.UnixMilli(), 1) == changed.UnixMilli():
			c.grid = divisor(c.grid, Milliseconds(changed.UnixMilli()))
		}
		c.longest = max(c.longest, unit.longest+Milliseconds(offset(t)-offset(changed)))
		t = changed
	}
}

// divisor returns the greatest common divisor.
func divisor(a, b time.Duration) time.Duration {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// DefaultTile returns the tile width if none is chosen.
func (c Calendar) DefaultTile() time.Duration {
	tile := NiceTiles[0]
	for _, nice := range NiceTiles {
		if nice <= CalendarUnits[c.Unit].tile && c.grid%nice == 0 {
			tile = nice
		}
	}
	return tile
}

// CheckTile returns what is wrong with a tile width, or nil.
func (c Calendar) CheckTile(tile time.Duration) error { return c.checkTile(tile, c) }

// checkTile returns what is wrong with the tile width of a window of the calendar's units.
func (c Calendar) checkTile(tile time.Duration, of Clocked) error {
	switch t, grid := FormatDuration(tile), FormatDuration(c.grid); {
	case c.grid%tile != 0:
		return fmt.Errorf("tile %s does not divide every %s of %s; choose %s or a divisor of it, or tile: exact", t, c.Unit, c.Zone, grid)
	case of.Reach()/tile > state.MaxTiles:
		advice := "choose a wider tile, such as tile: " + FormatDuration(c.DefaultTile())
		if of.Reach()/c.DefaultTile() > state.MaxTiles {
			advice = "no wider one divides it: use tile: exact"
		}
		return fmt.Errorf("window %s has %d tiles of %s, more than %d; %s", of, of.Reach()/tile, t, state.MaxTiles, advice)
	}
	return nil
}

// ParseZone finds a time zone by its name in the IANA database. It does not accept the machine's local zone: the
// meaning of a feature must not depend on the machine.
func ParseZone(name string) (*time.Location, error) {
	z, err := time.LoadLocation(name)
	if err != nil || name == "" || slices.Contains(ofTheMachine, strings.ToLower(strings.Split(name, "/")[0])) {
		return nil, fmt.Errorf("unknown time zone %q; write a name of the IANA database, such as Europe/Berlin or UTC", name)
	}
	return z, nil
}

// ofTheMachine are names, or what names begin with, that some machines have beside those of the database: for their
// local zone, and for zones with leap seconds, by which clocks change some seconds later.
var ofTheMachine = []string{"local", "localtime", "posixrules", "posix", "right"}

// ParseWeekday finds a day of the week by name.
func ParseWeekday(name string) (time.Weekday, bool) {
	i := slices.Index(Weekdays, strings.ToLower(name))
	return time.Weekday(i), i >= 0
}
