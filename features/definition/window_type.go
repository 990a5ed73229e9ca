package definition

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
)

// windows reads windows.
type windows struct{ *reader }

// windowType reads the type of a window; nil means a lifetime.
func (l windows) windowType(words windowWords) (typ window.Type, ok bool) {
	key := ""
	for _, k := range typeKeys {
		if w, ok := words.keys[k]; ok && key != "" {
			l.report(w.location, "a window has one type: %s cannot be combined with %s", k, key)
			return nil, false
		} else if ok {
			key = k
		}
	}
	for _, option := range windowKeys {
		w, given := words.keys[option]
		if of := windowOptions[option]; given && of != nil && !slices.Contains(of, key) {
			l.report(w.location, "%s applies to %s windows only; omit it", option, strings.Join(of, " or "))
			return nil, false
		}
	}
	switch w := words.keys[key]; key {
	case "rolling":
		return l.rolling(w, words)
	case "calendar":
		return l.calendar(words)
	case "tumbling":
		size, ok := l.length(w)
		return window.Tumbling{Size: size}, ok
	case "fixed":
		size, limit, ok := l.opening(words, w, "window")
		return window.Fixed{Size: size, MaxLength: limit}, ok
	case "session":
		gap, limit, ok := l.opening(words, w, "gap")
		return window.Session{Gap: gap, MaxLength: limit}, ok
	default:
		_, ok := words.keys["last"]
		return nil, ok
	}
}

// rolling reads a duration, of days perhaps in a time zone, or lifetime.
func (l windows) rolling(w word, words windowWords) (window.Type, bool) {
	tz, zoned := words.keys["tz"]
	if strings.EqualFold(w.text, "lifetime") {
		if zoned {
			l.report(tz.location, "tz does not apply to a lifetime; omit it")
		}
		return nil, !zoned
	}
	if _, isUnit := window.CalendarUnits[strings.ToLower(w.text)]; isUnit {
		l.report(w.location, "write calendar %s for what has come since it began", w.text)
		return nil, false
	}
	if strings.TrimLeft(w.text, "0123456789") == w.text {
		l.report(w.location, "unknown window %q; known: a rolling duration such as 7d, lifetime, and those that begin with %s",
			w.text, spelling.Alternatives(append(slices.Clip(typeKeys), "last")))
		return nil, false
	}
	size, ok := l.length(w)
	if !zoned || !ok {
		return window.Rolling{Size: size}, ok
	}
	zone, ok := l.zone(tz)
	switch days := size / window.Day; {
	case !ok:
		return nil, false
	case size == window.Day:
		l.report(tz.location, "a local day is a calendar window: write calendar day tz %s, or omit tz for the last 24 hours", tz.text)
		return nil, false
	case size%window.Day != 0:
		l.report(tz.location, "tz says when days begin, and a window of %s is not of whole days; omit it", w.text)
		return nil, false
	case zone == time.UTC:
		return window.Rolling{Size: size}, true
	default:
		return window.NewLocalDays(int(days), zone), true
	}
}

// zone reads a time zone.
func (l windows) zone(w word) (*time.Location, bool) {
	zone, err := window.ParseZone(w.text)
	if err != nil {
		l.report(w.location, "%s", err)
	}
	return zone, err == nil
}

// length reads how long a window is.
func (l windows) length(w word) (time.Duration, bool) {
	size, ok := l.duration(w)
	if ok && size == 0 {
		l.report(w.location, "a window must be longer than 0")
		return 0, false
	}
	return size, ok
}

// opening reads a window that begins with an event: its size or gap, and how far back its beginning is searched.
func (l windows) opening(words windowWords, w word, what string) (size, limit time.Duration, ok bool) {
	if size, ok = l.length(w); !ok {
		return 0, 0, false
	}
	limit = window.DefaultMaxLength(size)
	if given, written := words.keys["max_length"]; written {
		if limit, ok = l.duration(given); ok && limit < size {
			l.report(given.location, "max_length %s is shorter than the %s of %s", window.FormatDuration(limit), what, window.FormatDuration(size))
			return 0, 0, false
		}
	}
	return size, limit, ok
}

// calendar reads a unit, its time zone and the first day of weeks.
func (l windows) calendar(words windowWords) (window.Type, bool) {
	unit, first, at := words.keys["calendar"], time.Monday, time.UTC
	name := strings.ToLower(unit.text)
	if _, ok := window.CalendarUnits[name]; !ok {
		l.report(unit.location, "%s", spelling.Unknown("calendar unit", unit.text, slices.Collect(maps.Keys(window.CalendarUnits))))
		return nil, false
	}
	if w, ok := words.keys["tz"]; ok {
		var ok bool
		if at, ok = l.zone(w); !ok {
			return nil, false
		}
	}
	if w, ok := words.keys["starts"]; ok {
		known := false
		if first, known = window.ParseWeekday(w.text); !known {
			l.report(w.location, "%s", spelling.Unknown("day of the week", w.text, window.Weekdays))
			return nil, false
		}
		if name != "week" {
			l.report(w.location, "starts applies to a week only, not to a %s; omit it", name)
			return nil, false
		}
	}
	return window.NewCalendar(name, at, first), true
}
