package record

import (
	"fmt"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// field reads one field of the record.
func (d *Decoder) field(s *streamDecoder, f *fieldDecoder) (value.Value, error) {
	at := d.scan.spans[f.node.slot]
	wrong := func() (value.Value, error) {
		return value.Value{}, s.poison(WrongType, f.Path, "expected %s, found %s", f.expected(), d.found(at))
	}
	switch at.kind {
	case absent:
		return value.Value{}, d.reachable(s, WrongType, f.node, f.Path)
	case isNull:
		return value.Value{}, nil
	}
	switch f.Type {
	case value.String:
		if at.kind != isString && at.kind != isEscaped {
			return wrong()
		}
		v, ok := d.stringAt(at)
		if !ok {
			return v, s.poison(InvalidUTF8, f.Path, "the string is not valid UTF-8")
		}
		return v, nil
	case value.Bool:
		if at.kind != isTrue && at.kind != isFalse {
			return wrong()
		}
		return expr.Truth(at.kind == isTrue), nil
	case value.Int:
		if at.kind != isNumber {
			return wrong()
		}
		n, _ := value.ParseNumber(d.raw(at))
		num, how := n.Scaled(0)
		if how != value.Exact {
			return wrong()
		}
		return value.Value{Type: value.Int, Num: num}, nil
	case value.Float:
		if at.kind != isNumber {
			return wrong()
		}
		flt, ok := value.ParseFloat(d.raw(at))
		if !ok {
			return wrong()
		}
		return value.Value{Type: value.Float, Flt: flt}, nil
	case value.Decimal:
		if at.kind != isNumber && at.kind != isString {
			return wrong()
		}
		n, ok := value.ParseNumber(d.raw(at))
		if !ok {
			return wrong()
		}
		num, how := n.Scaled(int(f.Scale))
		if how != value.Exact {
			return wrong()
		}
		return value.Value{Type: value.Decimal, Num: num, Scale: f.Scale}, nil
	case value.Timestamp:
		unit := f.Unit
		switch {
		case unit != "":
		case at.kind == isString:
			unit = "rfc3339"
		default:
			unit = "ms"
		}
		ms, how := d.moment(at, unit)
		if how == value.Overflow || how == value.Fraction && f.Unit == "" {
			return wrong()
		}
		return value.Value{Type: value.Timestamp, Num: ms}, nil
	default:
		if at.kind != isObject {
			return wrong()
		}
		lat, ok1 := d.degrees(f.lat, 90)
		lon, ok2 := d.degrees(f.lon, 180)
		if !ok1 || !ok2 {
			return wrong()
		}
		return value.Value{Type: value.Location, Flt: lat, Lon: lon}, nil
	}
}

// expected describes what the field takes.
func (f *fieldDecoder) expected() string {
	switch f.Type {
	case value.Int:
		return "an integer of 64 bits"
	case value.Float:
		return "a number that a 64-bit float holds"
	case value.Decimal:
		return fmt.Sprintf("a decimal of 64 bits with at most %d digits behind the point", f.Scale)
	case value.Timestamp:
		switch f.Unit {
		case "":
			return "a timestamp (milliseconds since 1970, or RFC 3339)"
		case "datetime":
			return "a timestamp (date and time in UTC, such as 2026-01-31 23:59:59.999)"
		}
		return "a timestamp (" + f.Unit + ")"
	case value.Location:
		return `a location ({"lat": -90 to 90, "lon": -180 to 180})`
	}
	return expr.WithArticle(f.Type)
}

// found describes what stands at a place: numbers by themselves, the others by
// their kinds.
func (d *Decoder) found(at span) string {
	if at.kind != isNumber {
		return at.kind.String()
	}
	const most = 40
	if text := d.raw(at); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(d.raw(at))
}

// reachable says of an absent value whether it could be there: a path that
// leads through something that is no object is a wrong type.
func (d *Decoder) reachable(s *streamDecoder, reason Reason, n *pathNode, path []string) error {
	for n, depth := n.parent, len(path)-1; depth > 0; n, depth = n.parent, depth-1 {
		switch at := d.scan.spans[n.slot]; at.kind {
		case absent:
			continue
		case isObject, isNull:
			return nil
		default:
			return s.poison(reason, path[:depth], "expected an object, found %s", d.found(at))
		}
	}
	return nil
}

func (d *Decoder) degrees(slot int, limit float64) (float64, bool) {
	at := d.scan.spans[slot]
	if at.kind != isNumber {
		return 0, false
	}
	f, ok := value.ParseFloat(d.raw(at))
	return f, ok && -limit <= f && f <= limit
}
