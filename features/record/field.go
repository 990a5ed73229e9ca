package record

import (
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// field reads one field of the record into v.
func (s *streamDecoder) field(f *fieldDecoder, v *value.Value) error {
	if f.node == nil {
		return s.place(f, v)
	}
	at := &s.data[f.node.slot]
	switch at.Type {
	case Absent:
		*v = value.Value{}
		return s.reachable(WrongType, f.node, f.Path)
	case Null:
		*v = value.Value{}
		return nil
	}
	if f.NullValues != nil && f.meansNull(at) {
		*v = value.Value{}
		return nil
	}
	if f.Type == value.String && at.isText() {
		if !at.validUTF8() {
			return s.poison(InvalidUTF8, f.Path, "the string is not valid UTF-8")
		}
		*v = value.Value{Type: value.String, Str: at.Text}
		return nil
	}
	var ok bool
	if *v, ok = s.typed(f, at); !ok {
		return s.poison(WrongType, f.Path, "expected %s, found %s", f.expected(), s.found(f, at))
	}
	return nil
}

// place reads a location whose degrees are two values of the record.
func (s *streamDecoder) place(f *fieldDecoder, v *value.Value) error {
	*v = value.Value{}
	if s.data[f.lat.slot].lacking() && s.data[f.lon.slot].lacking() {
		if err := s.reachable(WrongType, f.lat, f.Lat); err != nil {
			return err
		}
		return s.reachable(WrongType, f.lon, f.Lon)
	}
	lat, ok := s.degrees(f, f.lat, 90)
	if !ok {
		return s.poison(WrongType, f.Lat, "expected a latitude of the location %s, a number from -90 to 90, found %s", f.Name, s.data[f.lat.slot].describe())
	}
	lon, ok := s.degrees(f, f.lon, 180)
	if !ok {
		return s.poison(WrongType, f.Lon, "expected a longitude of the location %s, a number from -180 to 180, found %s", f.Name, s.data[f.lon.slot].describe())
	}
	*v = value.Value{Type: value.Location, Flt: lat, Lon: lon}
	return nil
}

// lacking reports whether there is no value.
func (d *Datum) lacking() bool { return d.Type == Absent || d.Type == Null }

// meansNull reports whether the field takes a value of the record for null.
func (f *fieldDecoder) meansNull(at *Datum) bool {
	return (at.isText() || at.Type == Number) && slices.ContainsFunc(f.NullValues, func(text string) bool { return text == string(at.Text) })
}

// leniently is the end of a message about a value that the field would take if it were lenient.
const leniently = ", which `lenient: true` reads"

// found describes a value that a field does not take.
func (s *streamDecoder) found(f *fieldDecoder, at *Datum) string {
	found := at.describe()
	takes := func(change func(*Field)) bool {
		other := *f.Field
		change(&other)
		changed := *f
		changed.Field = &other
		if other.Base64 {
			changed.scaled = newScaledReader()
		}
		_, ok := s.typed(&changed, at)
		return ok
	}
	switch {
	case !f.Lenient && takes(func(f *Field) { f.Lenient, f.Form.Lenient = true, true }):
		return found + leniently
	case f.Type == value.Decimal && !f.Round && takes(func(f *Field) { f.Round = true }):
		return found + ", which `round: true` rounds"
	case f.Type == value.Timestamp && at.isText() && f.Form.withoutOffset(at.Text):
		return found + offsetMissing
	case f.Type == value.Location && f.Point == "" && takes(func(f *Field) { f.Point = "wkt" }):
		return found + ", which `encoding: wkt` reads"
	case f.Type == value.Location && f.Point == "" && (takes(func(f *Field) { f.Point = "lon_lat" }) || takes(func(f *Field) { f.Point = "lat_lon" })):
		return found + ", which `encoding: lon_lat` or `encoding: lat_lon` reads, in that order"
	case f.Type == value.Location && f.Point == "" && at.Type == Object && (s.data[f.lat.slot].lacking() || s.data[f.lon.slot].lacking()):
		return found + " without one of these: if they have other names, or may both be null, give their paths as `lat` and `lon` of the field"
	case f.Type != value.Decimal:
		return found
	case s.ofDebezium() && !f.Base64 && at.isText() && takes(func(f *Field) { f.Base64 = true }):
		return found + ", which `encoding: base64` reads"
	}
	if at.Type == String && len(at.Text) > 0 {
		found += " that is not one" // others are
	}
	if _, scaled := newScaledReader().read(at); scaled {
		if found += " of scale and value"; !f.Base64 {
			found += ", which `encoding: base64` reads"
		} else {
			found += fmt.Sprintf(" that has more, or more than %d digits after the decimal point", f.Scale)
		}
	}
	return found
}

// ofDebezium reports whether the records are Debezium's, whose connectors write decimals in base64 by default.
func (s *streamDecoder) ofDebezium() bool {
	_, ok := s.stream.Format.(debeziumFormat)
	return ok
}

// typed converts a value to the field's type, which is not string, if possible.
func (s *streamDecoder) typed(f *fieldDecoder, at *Datum) (value.Value, bool) {
	if f.Lenient && (at.Type == String || at.Type == Number && f.Type == value.Bool) {
		untyped := *at
		untyped.Type = Untyped
		at = &untyped
	}
	switch f.Type {
	case value.Bool:
		truth, ok := at.truth()
		return expr.Truth(truth), ok
	case value.Int:
		n, ok := at.number()
		num, how := n.Scaled(0)
		return value.Value{Type: value.Int, Num: num}, ok && how == value.Exact
	case value.Float:
		flt, ok := at.float()
		return value.Value{Type: value.Float, Flt: flt}, ok
	case value.Decimal:
		num, how, ok := f.decimal(at)
		return value.Value{Type: value.Decimal, Num: num, Scale: f.Scale}, ok && (how == value.Exact || f.Round && how == value.Fraction)
	case value.Timestamp:
		ms, how := at.moment(&f.Form)
		if placeholder(ms) && how != value.Overflow {
			return value.Value{}, true
		}
		return value.Value{Type: value.Timestamp, Num: ms}, how == value.Exact || how == value.Fraction && (f.Form.Unit != "" || at.Unit != NoUnit)
	case value.Location:
		if f.Point != "" {
			lat, lon, empty, ok := at.point(f.Point)
			if empty {
				return value.Value{}, ok
			}
			return value.Value{Type: value.Location, Flt: lat, Lon: lon}, ok
		}
		lat, ok1 := s.degrees(f, f.lat, 90)
		lon, ok2 := s.degrees(f, f.lon, 180)
		return value.Value{Type: value.Location, Flt: lat, Lon: lon}, at.Type == Object && ok1 && ok2
	}
	return value.Value{}, false
}

// decimal reads the digits of a decimal at the field's scale.
func (f *fieldDecoder) decimal(at *Datum) (num int64, how value.Fit, ok bool) {
	scale := int(f.Scale)
	switch {
	case f.Base64 && at.Type == Object:
		text, ok := f.scaled.read(at)
		if !ok {
			return 0, value.Overflow, false
		}
		return value.Nearest(text, scale)
	case f.Base64 && f.Exponent == 0:
		num, ok = at.base64()
		return num, value.Exact, ok
	case f.Base64:
		if f.scaled.text, ok = at.appendBase64(f.scaled.text[:0]); !ok {
			return 0, value.Overflow, false
		}
		return value.Nearest(f.scaled.text, scale+f.Exponent)
	case at.Type == Number || at.isText():
		return value.Nearest(at.Text, scale+f.Exponent)
	}
	return 0, value.Overflow, false
}

// expected describes what the field takes.
func (f *fieldDecoder) expected() string {
	switch f.Type {
	case value.Int:
		return "a 64-bit integer"
	case value.Float:
		return "a number that a 64-bit float holds"
	case value.Decimal:
		if f.Base64 {
			return "a decimal of at most 64 bits in base64"
		}
		if f.Round {
			return fmt.Sprintf("a decimal of at most 64 bits with %d digits after the decimal point", f.Scale)
		}
		return fmt.Sprintf("a 64-bit decimal with at most %d digits after the decimal point", f.Scale)
	case value.Timestamp:
		return "a timestamp (" + f.Form.describe() + ")"
	case value.Location:
		switch f.Point {
		case "lon_lat":
			return "a location ([lon, lat], or a text of these)"
		case "lat_lon":
			return "a location ([lat, lon], or a text of these)"
		case "wkt":
			return "a location (a text such as POINT(13.4 52.5), the longitude first)"
		}
		return `a location ({"lat": -90 to 90, "lon": -180 to 180})`
	}
	return expr.WithArticle(f.Type)
}

// reachable returns an error for an absent value whose path leads through something that is not an object: that is a
// wrong type.
func (s *streamDecoder) reachable(reason Reason, n *Node, path []string) error {
	for n, depth := n.parent, len(path)-1; depth > 0 && n != nil; n, depth = n.parent, depth-1 { // an element has no parent
		switch at := &s.data[n.slot]; at.Type {
		case Absent:
			continue
		case Object, Null:
			return nil
		default:
			return s.poison(reason, path[:depth], "expected an object, found %s", at.describe())
		}
	}
	return nil
}

// degrees reads one of the two numbers of a location.
func (s *streamDecoder) degrees(f *fieldDecoder, n *Node, limit float64) (float64, bool) {
	at := s.data[n.slot]
	if f.Lenient && at.Type == String {
		at.Type = Untyped
	}
	degrees, ok := at.float()
	return degrees, ok && inDegrees(degrees, limit)
}
