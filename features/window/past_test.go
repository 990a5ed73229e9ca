package window

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// A window has passed a time when it no longer reaches back before it, and not a millisecond earlier.
func TestPast(t *testing.T) {
	noon := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) // the day before daylight saving begins in Berlin
	day := Calendar(calendarOf(t, "day", "Europe/Berlin"))
	hour := Rolling{time.Hour}
	for name, c := range map[string]struct {
		Window
		since time.Time
		want  time.Time
	}{
		"exact":                {Window{Type: hour, Exact: true}, noon, noon.Add(time.Hour - time.Millisecond)},
		"exact, left closed":   {Window{Type: hour, Exact: true, ClosedLeft: true}, noon, noon.Add(time.Hour)},
		"exact, delayed":       {Window{Type: hour, Exact: true, Delay: time.Minute}, noon, noon.Add(time.Hour + time.Minute - time.Millisecond)},
		"exact, the last":      {Window{Type: hour, Exact: true, Last: 3}, noon, noon.Add(time.Hour - time.Millisecond)},
		"tiles":                {Window{Type: hour, Tile: time.Minute}, noon, noon.Add(59 * time.Minute)},
		"tiles, within one":    {Window{Type: hour, Tile: time.Minute}, noon.Add(1), noon.Add(59 * time.Minute)},
		"tiles, after a begin": {Window{Type: hour, Tile: time.Minute}, noon.Add(time.Millisecond), noon.Add(time.Hour)},
		"tiles, delayed":       {Window{Type: hour, Tile: time.Minute, Delay: time.Hour}, noon, noon.Add(119 * time.Minute)},
		"tumbling":             {Window{Type: Tumbling{time.Hour}, Tile: time.Minute}, noon.Add(time.Second), noon.Add(time.Hour)},
		"tumbling, at a begin": {Window{Type: Tumbling{time.Hour}, Tile: time.Minute}, noon, noon},
		"calendar":             {Window{Type: day, Tile: time.Hour}, noon, time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC)},
		"calendar, short day":  {Window{Type: day, Exact: true}, noon.Add(24 * time.Hour), time.Date(2026, 3, 29, 22, 0, 0, 0, time.UTC)},
		"session":              {Window{Type: Session{Gap: 10 * time.Minute, MaxLength: time.Hour}, Exact: true}, noon, noon.Add(70*time.Minute - time.Millisecond)},
		"fixed":                {Window{Type: Fixed{Size: time.Hour, MaxLength: 24 * time.Hour}, Exact: true}, noon, noon.Add(48*time.Hour - time.Millisecond)},
	} {
		got, ok := c.Past(&state.Series{Tile: c.Tile.Milliseconds()}, c.since.UnixMilli())
		if !ok || got != c.want.UnixMilli() {
			t.Errorf("%s: past %s at %s, %t; want %s", name, c.since, time.UnixMilli(got).UTC(), ok, c.want)
		}
	}
	for name, w := range map[string]Window{"lifetime": {}, "the last": {Last: 3, Exact: true}} {
		if at, ok := w.Past(&state.Series{}, noon.UnixMilli()); ok {
			t.Errorf("%s: past at %d", name, at)
		}
	}
}
