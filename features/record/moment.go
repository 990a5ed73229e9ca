package record

import (
	"time"
	"unsafe"

	"github.com/weir-stream/weir/value"
)

// Moments lie in the years 1 to 9999.
const (
	firstMoment = -62135596800000
	lastMoment  = 253402300799999
)

// timestampUnits are the units of timestamps that are numbers, by their
// exponents of a second.
var timestampUnits = map[string]int{"s": 0, "ms": -3, "us": -6, "ns": -9}

// moment reads a timestamp in milliseconds, rounding finer ones down.
func (d *Decoder) moment(at span, unit string) (int64, value.Fit) {
	if unit == "rfc3339" || unit == "datetime" {
		if at.kind != isString {
			return 0, value.Overflow
		}
		var t time.Time
		var err error
		if unit == "rfc3339" {
			err = t.UnmarshalText(d.raw(at))
		} else {
			t, err = time.Parse(time.DateTime, unsafe.String(unsafe.SliceData(d.raw(at)), at.end-at.start))
		}
		if err != nil {
			return 0, value.Overflow
		}
		return inRange(t.UnixMilli(), value.Exact)
	}
	if at.kind != isNumber {
		return 0, value.Overflow
	}
	n, _ := value.ParseNumber(d.raw(at))
	return inRange(n.Scaled(timestampUnits[unit] + 3))
}

func inRange(ms int64, how value.Fit) (int64, value.Fit) {
	if ms < firstMoment || ms > lastMoment {
		return 0, value.Overflow
	}
	return ms, how
}

// eventTime is the time of the record's event.
func (d *Decoder) eventTime(s *streamDecoder, recorded int64) (int64, error) {
	at := d.scan.spans[s.time.slot]
	path := s.stream.Timestamp.Path
	switch at.kind {
	case absent:
		if err := d.reachable(s, BadTimestamp, s.time, path); err != nil {
			return 0, err
		}
		fallthrough
	case isNull:
		return 0, s.poison(MissingTimestamp, path, "the event has no timestamp")
	}
	unit := s.stream.Timestamp.Unit
	ms, how := d.moment(at, unit)
	if how == value.Overflow {
		if unit == "rfc3339" && (at.kind == isString || at.kind == isEscaped) {
			return 0, s.poison(BadTimestamp, path, "expected an RFC 3339 timestamp such as 2026-01-31T23:59:59.999Z")
		}
		if unit == "datetime" && (at.kind == isString || at.kind == isEscaped) {
			return 0, s.poison(BadTimestamp, path, "expected a date and time in UTC such as 2026-01-31 23:59:59.999")
		}
		return 0, s.poison(BadTimestamp, path, "expected a timestamp in %s of the years 1 to 9999, found %s", unit, d.found(at))
	}
	if limit := s.stream.MaxFuture; recorded >= 0 && ms > recorded+limit.Milliseconds() {
		return 0, s.poison(FutureTimestamp, path, "the event is %s ahead of its record; the limit is %s",
			time.Duration(ms-recorded)*time.Millisecond, limit)
	}
	return ms, nil
}
