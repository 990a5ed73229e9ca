package window

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Day is the unit d of durations: 24 hours, independent of the calendar.
const Day = 24 * time.Hour

// Longest bounds every duration, so that moments and sums of durations cannot overflow.
const Longest = 36500 * Day

var durationUnits = []struct {
	name string
	size time.Duration
}{
	{"w", 7 * Day}, {"d", Day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
}

// ParseDuration reads a duration in ms, s, m, h, d and w: 7d, 90m, 1h30m. The units of a compound
// duration must be descending.
func ParseDuration(text string) (time.Duration, error) {
	bad := fmt.Errorf("bad duration %q: write whole numbers with ms, s, m, h, d or w, such as 7d or 90m", text)
	var total time.Duration
	rest, next := text, 0
	for {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil {
			return 0, bad
		}
		rest = rest[digits:]
		letters := len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))
		for next < len(durationUnits) && durationUnits[next].name != rest[:letters] {
			next++
		}
		if next == len(durationUnits) {
			return 0, bad
		}
		unit := durationUnits[next].size
		rest, next = rest[letters:], next+1
		if n > int64((Longest-total)/unit) {
			return 0, fmt.Errorf("duration %q is longer than %s", text, FormatDuration(Longest))
		}
		total += time.Duration(n) * unit
		if rest == "" {
			return total, nil
		}
	}
}

// FormatDuration writes a duration in whole milliseconds with the widest unit
// up to days that divides it: 7d, 90m.
func FormatDuration(d time.Duration) string { return FormatMilliseconds(d.Milliseconds()) }

// FormatMilliseconds is FormatDuration for a number of milliseconds. A window with its delay and keep may be longer than
// the 292 years that a time.Duration holds.
func FormatMilliseconds(n int64) string {
	for _, u := range durationUnits[1:] {
		if size := u.size.Milliseconds(); n%size == 0 && n != 0 {
			return strconv.FormatInt(n/size, 10) + u.name
		}
	}
	return "0s"
}

// Milliseconds converts milliseconds to a duration.
func Milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
