package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oddZones are zones with unusual offsets or changes.
var oddZones = []string{
	"UTC", "Asia/Shanghai", "Asia/Kolkata", "Asia/Kathmandu", "Europe/Berlin", "Europe/Dublin", "America/Sao_Paulo",
	"America/Havana", "America/St_Johns", "Australia/Lord_Howe", "Africa/Monrovia", "Africa/Casablanca", "Antarctica/Troll",
	"Pacific/Apia", "Pacific/Kiritimati", "Asia/Gaza", "Asia/Beirut", "Atlantic/Azores",
}

func calendarOf(t interface {
	Helper()
	Fatal(...any)
}, unit, name string) Calendar {
	t.Helper()
	z, err := ParseZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return NewCalendar(unit, z, time.Monday)
}

// A zone means the same on all machines.
func TestZonesOfTheMachineAreUnknown(t *testing.T) {
	for _, name := range []string{"", "Local", "local", "localtime", "posixrules", "right/Europe/Berlin", "posix/UTC", "Mars/Phobos"} {
		if z, err := ParseZone(name); err == nil {
			t.Errorf("%q is the zone %s", name, z)
		}
	}
}

func TestCalendarTiles(t *testing.T) {
	for _, c := range []struct {
		unit, zone          string
		grid, tile, longest string
	}{
		{"hour", "UTC", "1h", "1m", "1h"},
		{"day", "UTC", "1d", "1h", "1d"},
		{"week", "UTC", "1d", "1d", "7d"},
		{"month", "UTC", "1d", "1d", "31d"},
		{"hour", "Asia/Kolkata", "30m", "1m", "1h"},
		{"day", "Asia/Kolkata", "30m", "30m", "1d"},
		{"day", "Asia/Kathmandu", "15m", "15m", "1d"},
		{"day", "Europe/Berlin", "1h", "1h", "25h"},
		{"month", "Europe/Berlin", "1h", "1h", "745h"},
		{"quarter", "Europe/Berlin", "1h", "1h", "2209h"},
		{"year", "UTC", "1d", "1d", "366d"},
		{"year", "Asia/Kolkata", "30m", "30m", "366d"},
		// Daylight saving by half an hour now, by an hour until 1985.
		{"hour", "Australia/Lord_Howe", "30m", "1m", "2h"},
		// 44 minutes and a half behind UTC until 1972.
		{"day", "Africa/Monrovia", "30s", "30s", "1d"},
	} {
		got := calendarOf(t, c.unit, c.zone)
		if grid, tile, longest := FormatDuration(got.grid), FormatDuration(got.DefaultTile()), FormatDuration(got.Reach()); grid != c.grid || tile != c.tile || longest != c.longest {
			t.Errorf("%s: grid %s, tile %s, longest %s; want %s, %s, %s", got, grid, tile, longest, c.grid, c.tile, c.longest)
		}
		if err := got.CheckTile(got.DefaultTile()); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
}

// In every zone, windows of a calendar are contiguous, begin with a tile, and are no longer than their Reach.
func TestCalendarWindowsAreContiguous(t *testing.T) {
	var calendars []Clocked
	for _, name := range oddZones {
		for unit := range CalendarUnits {
			calendars = append(calendars, calendarOf(t, unit, name))
		}
	}
	to2100 := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(367*Day.Milliseconds(), to2100).Draw(t, "at")
		for _, c := range calendars {
			from := c.begin(at, 1)
			if from > at || at-from >= c.Reach().Milliseconds() {
				t.Fatalf("%s at %d begins at %d, longest %s", c, at, from, c.Reach())
			}
			if again := c.begin(from, 1); again != from {
				t.Fatalf("%s at %d begins at %d, and there at %d", c, at, from, again)
			}
			if middle := c.begin((from+at)/2, 1); middle != from {
				t.Fatalf("%s at %d begins at %d, half way at %d", c, at, from, middle)
			}
			if tile := c.DefaultTile().Milliseconds(); from%tile != 0 {
				t.Fatalf("%s at %d begins at %d, which is not a multiple of %d", c, at, from, tile)
			}
		}
	})
}

// If clocks are put back across midnight to the day before, the new day has two midnights, and the first one counts.
func TestDaysWithTwoMidnights(t *testing.T) {
	for _, c := range []struct{ unit, zone, at, begins string }{
		// At 00:01 clocks were put back to 23:01.
		{"day", "America/St_Johns", "2010-11-07T00:00:30-02:30", "2010-11-07T00:00:00-02:30"},
		{"day", "America/St_Johns", "2010-11-06T23:30:00-03:30", "2010-11-07T00:00:00-02:30"},
		{"day", "America/St_Johns", "2010-11-07T00:00:00-03:30", "2010-11-07T00:00:00-02:30"},
		{"day", "America/St_Johns", "2010-11-07T23:59:59-03:30", "2010-11-07T00:00:00-02:30"},
		{"day", "America/St_Johns", "2010-11-08T00:00:00-03:30", "2010-11-08T00:00:00-03:30"},
		{"month", "America/St_Johns", "2009-11-30T12:00:00-03:30", "2009-11-01T00:00:00-02:30"},
		{"quarter", "America/St_Johns", "2009-12-31T23:59:59-03:30", "2009-10-01T00:00:00-02:30"},
		{"quarter", "Europe/Berlin", "2026-06-30T23:59:59+02:00", "2026-04-01T00:00:00+02:00"},
		{"quarter", "Asia/Shanghai", "2026-01-01T00:00:00+08:00", "2026-01-01T00:00:00+08:00"},
		{"year", "America/St_Johns", "2009-12-31T23:59:59-03:30", "2009-01-01T00:00:00-03:30"},
		// Its 30th of December 2011 was skipped, as clocks went from one side of the date line to the other.
		{"year", "Pacific/Apia", "2011-12-31T12:00:00+14:00", "2011-01-01T00:00:00-10:00"},
		// At 02:00 to 23:00.
		{"day", "Antarctica/Casey", "2010-03-05T12:00:00+08:00", "2010-03-05T00:00:00+11:00"},
		// At 01:00 to 00:00 of the same day.
		{"day", "America/Havana", "2025-11-02T12:00:00-05:00", "2025-11-02T00:00:00-04:00"},
	} {
		at, _ := time.Parse(time.RFC3339, c.at)
		begins, _ := time.Parse(time.RFC3339, c.begins)
		calendar := calendarOf(t, c.unit, c.zone)
		if got := calendar.begin(at.UnixMilli(), 1); got != begins.UnixMilli() {
			t.Errorf("%s at %s begins at %s, want %s", calendar, c.at, time.UnixMilli(got).In(calendar.Zone), c.begins)
		}
	}
}

// In every zone, a window of local days has the day of the moment and those before it, on a calendar, is no longer than
// its Reach, and begins with a tile.
func TestLocalDays(t *testing.T) {
	to2100 := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	skipped := time.Date(2011, 12, 31, 10, 0, 0, 0, time.UTC).UnixMilli() // when the day before did not exist in Apia
	rapid.Check(t, func(t *rapid.T) {
		day := calendarOf(t, "day", rapid.SampledFrom(oddZones).Draw(t, "zone"))
		at := rapid.Int64Range(32*Day.Milliseconds(), to2100).Draw(t, "at")
		if day.Zone.String() == "Pacific/Apia" && at < skipped+40*Day.Milliseconds() && at > skipped-Day.Milliseconds() {
			t.Skip()
		}
		w := NewLocalDays(rapid.IntRange(2, 30).Draw(t, "days"), day.Zone)
		from := w.begin(at, 1)
		first := day.begin(at, 1)
		for range w.Days - 1 {
			first = day.begin(first-1, 1)
		}
		if from != first || at-from >= w.Reach().Milliseconds() || from%w.DefaultTile().Milliseconds() != 0 {
			t.Fatalf("%s at %d begins at %d, want %d; longest %s", w, at, from, first, w.Reach())
		}
	})
}

// A session that began exactly its greatest length ago is complete.
func TestLongestSession(t *testing.T) {
	s := Session{Gap: 30 * time.Minute, MaxLength: time.Hour}
	start, last := int64(0), s.MaxLength.Milliseconds()-1
	times := []int64{start, last / 3, 2 * last / 3, last}
	if from, _, sure := s.Open(last, 0, times); from != start || !sure {
		t.Errorf("begins at %d, sure %v", from, sure)
	}
	if from, _, sure := s.Open(last+1, 0, times); from != 1 || sure {
		t.Errorf("a millisecond later it begins at %d, sure %v", from, sure)
	}
}
