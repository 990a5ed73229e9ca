package record

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weir-stream/weir/value"
)

// Moments lie in the years 1 to 9999.
const (
	firstMoment = -62135596800000
	lastMoment  = 253402300799999
)

// timestampUnits are the units of numeric timestamps, as powers of ten of a second.
var timestampUnits = map[string]int{"s": 0, "ms": -3, "us": -6, "ns": -9}

// TimeUnit is the unit of a number since 1970, if its format knows it.
type TimeUnit uint8

// The units.
const (
	NoUnit TimeUnit = iota
	Milliseconds
	Microseconds
	Nanoseconds
	Days
)

const dayMillis = 24 * 60 * 60 * 1000

// known returns the timestamp of a number in its own unit.
func (d *Datum) known() (int64, value.Fit) {
	n, ok := d.number()
	if !ok {
		return 0, value.Overflow
	}
	if d.Unit == Days {
		days, how := n.Scaled(0)
		if how == value.Overflow || days > lastMoment/dayMillis || days < firstPlaceholder/dayMillis {
			return 0, value.Overflow
		}
		return days * dayMillis, how
	}
	return inRange(n.Scaled(3 * (1 - int(d.Unit))))
}

// Moment returns the moment of a whole number whose format knows its unit, in UTC; false for other values.
func (d *Datum) Moment() (at time.Time, ok bool) {
	n, err := strconv.ParseInt(string(d.Text), 10, 64)
	switch d.Unit {
	case NoUnit:
		return at, false
	case Milliseconds:
		at = time.UnixMilli(n)
	case Microseconds:
		at = time.UnixMicro(n)
	case Nanoseconds:
		at = time.Unix(0, n)
	case Days:
		at = time.Unix(n*dayMillis/1000, 0)
	}
	return at.UTC(), err == nil
}

// moment reads a timestamp in milliseconds, rounding finer ones down.
func (d *Datum) moment(f *TimeForm) (int64, value.Fit) {
	if d.Unit != NoUnit {
		return d.known()
	}
	if f.ofNumbers(d) {
		n, ok := value.ParseNumber(d.Text)
		if !ok || !d.isNumber() && f.Unit != "auto" && !f.Lenient {
			return 0, value.Overflow
		}
		unit, ok := timestampUnits[f.Unit]
		if !ok {
			unit = f.unitOf(n)
		}
		return inRange(n.Scaled(unit + 3))
	}
	if ms, ok := f.Parse(d.Text); ok && (d.isText() || d.Type == Number && f.Layout != "") {
		return ms, value.Exact
	}
	return 0, value.Overflow
}

// firstPlaceholder is before the zero times of year 1 in the Julian calendar, as Java's java.util.Date has it, in any zone: two
// days earlier than in the Gregorian one.
const firstPlaceholder = firstMoment - 3*dayMillis

func inRange(ms int64, how value.Fit) (int64, value.Fit) {
	if ms < firstPlaceholder || ms > lastMoment {
		return 0, value.Overflow
	}
	return ms, how
}

// eventTime returns the time of the record's event. No event is later than its record: a clock that is ahead by up to
// MaxFuture is corrected to it. Otherwise events that do not count yet could push those that do out of a log.
func (s *streamDecoder) eventTime(recorded int64) (int64, error) {
	if s.stream.Timestamp.Path == nil {
		return recorded, nil
	}
	at := &s.data[s.time.slot]
	path := s.stream.Timestamp.Path
	switch at.Type {
	case Absent:
		if err := s.reachable(BadTimestamp, s.time, path); err != nil {
			return 0, err
		}
		fallthrough
	case Null:
		if s.stream.Timestamp.Optional {
			return recorded, nil
		}
		return 0, s.poison(MissingTimestamp, path, "the event has no timestamp")
	}
	form := &s.stream.Timestamp.Form
	ms, how := at.moment(form)
	if how == value.Overflow {
		found := at.describe()
		if lenient := (TimeForm{Unit: form.Unit, Zone: form.Zone, Lenient: true}); form.Layout == "" && !form.Lenient {
			if _, how := at.moment(&lenient); how != value.Overflow {
				found += leniently
			}
		}
		return 0, s.poison(BadTimestamp, path, "expected %s, found %s%s", form.ofEvents(), found, at.fittingUnit(form, recorded))
	}
	day := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
	if placeholder(ms) {
		return 0, s.poison(BadTimestamp, path, "the event is of %s, a date that stands for none", day(ms))
	}
	if 0 <= ms && ms < yearMillis && recorded >= since1990 {
		return 0, s.poison(BadTimestamp, path, "the event is of %s, its record of %s%s", day(ms), day(recorded), at.fittingUnit(form, recorded))
	}
	switch limit := s.stream.MaxFuture; {
	case recorded == NoTime:
		return ms, nil
	case recorded < 0:
		return 0, s.poison(BadTimestamp, nil, "the record has no timestamp, which bounds that of its event: let the topic have LogAppendTime")
	case ms-recorded > limit.Milliseconds():
		return 0, s.poison(FutureTimestamp, path, "the event is %s ahead of its record; the limit is %s", duration(ms-recorded), limit)
	default:
		return min(ms, recorded), nil
	}
}

// placeholder reports whether a timestamp is one that programs write where there is none, in whatever zone: the zero times of Go and
// .NET (year 1), of Windows (1601), of SQL Server (1753), of spreadsheets (the last days of 1899), and the first day of 1900 are all
// before any event or birthday; the last day of 9999 stands for no end.
func placeholder(ms int64) bool {
	const (
		in1900  = -25567 * dayMillis
		lastDay = lastMoment - dayMillis + 1
		zone    = 14 * 60 * 60 * 1000 // the farthest from UTC
	)
	return ms < in1900+dayMillis+zone || ms >= lastDay-zone
}

// An event of the year 1970 in a record of 1990 or later has a timestamp in another unit, or none: today's milliseconds
// are taken for microseconds, or an encoding without absent fields has 0. It would be late for every window, so all
// answers would be 0, and nothing would say why.
const (
	yearMillis = 365 * dayMillis
	since1990  = 7305 * dayMillis
)

// fittingUnit says in which unit a timestamp would be near its record's time, as the end of a message; "" if in none.
func (d *Datum) fittingUnit(f *TimeForm, recorded int64) string {
	if f.withoutOffset(d.Text) {
		return offsetMissing
	}
	if _, numeric := timestampUnits[f.Unit]; !numeric || d.Unit != NoUnit || recorded < since1990 {
		return "" // near 1970 several units would do
	}
	for fitting := range timestampUnits {
		ms, how := d.moment(&TimeForm{Unit: fitting})
		if how != value.Overflow && max(ms-recorded, recorded-ms) < yearMillis {
			return fmt.Sprintf(": set unit: %s if the timestamp is in %[1]s, not %s", fitting, f.Unit)
		}
	}
	return ""
}

// duration writes a number of milliseconds, in days if they are more than the 292 years that a time.Duration holds.
func duration(ms int64) string {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return fmt.Sprintf("%d days", ms/dayMillis)
	}
	return (time.Duration(ms) * time.Millisecond).String()
}
