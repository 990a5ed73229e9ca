package record

import (
	"fmt"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// field reads one field of the record into v.
func (s *streamDecoder) field(f *fieldDecoder, v *value.Value) error {
	at := &s.data[f.node.slot]
	switch at.Type {
	case Absent:
		*v = value.Value{}
		return s.reachable(WrongType, f.node, f.Path)
	case Null:
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
		found := at.describe()
		if f.Type == value.Timestamp && at.isText() && f.Form.withoutOffset(at.Text) {
			found += offsetMissing
		}
		if f.Type == value.Decimal && at.Type == String && len(at.Text) > 0 {
			found += " that is not one" // others are
		}
		if _, scaled := newScaledReader().read(at); scaled && f.Type == value.Decimal {
			if found += " of scale and value"; !f.Base64 {
				found += ", which `encoding: base64` reads"
			} else {
				found += fmt.Sprintf(" that has more, or more than %d digits after the decimal point", f.Scale)
			}
		}
		return s.poison(WrongType, f.Path, "expected %s, found %s", f.expected(), found)
	}
	return nil
}

// typed converts a value to the field's type, which is not string, if possible.
func (s *streamDecoder) typed(f *fieldDecoder, at *Datum) (value.Value, bool) {
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
		if f.Base64 && at.Type == Object {
			n, ok := f.scaled.read(at)
			num, how := n.Scaled(int(f.Scale))
			return value.Value{Type: value.Decimal, Num: num, Scale: f.Scale}, ok && how == value.Exact
		}
		if f.Base64 {
			num, ok := at.base64()
			return value.Value{Type: value.Decimal, Num: num, Scale: f.Scale}, ok
		}
		if at.Type != Number && !at.isText() {
			return value.Value{}, false
		}
		n, ok := value.ParseNumber(at.Text)
		num, how := n.Scaled(int(f.Scale))
		return value.Value{Type: value.Decimal, Num: num, Scale: f.Scale}, ok && how == value.Exact
	case value.Timestamp:
		ms, how := at.moment(&f.Form)
		if placeholder(ms) && how != value.Overflow {
			return value.Value{}, true
		}
		return value.Value{Type: value.Timestamp, Num: ms}, how == value.Exact || how == value.Fraction && (f.Form.Unit != "" || at.Unit != NoUnit)
	case value.Location:
		lat, ok1 := s.degrees(f.lat, 90)
		lon, ok2 := s.degrees(f.lon, 180)
		return value.Value{Type: value.Location, Flt: lat, Lon: lon}, at.Type == Object && ok1 && ok2
	}
	return value.Value{}, false
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
		return fmt.Sprintf("a 64-bit decimal with at most %d digits after the decimal point", f.Scale)
	case value.Timestamp:
		return "a timestamp (" + f.Form.describe() + ")"
	case value.Location:
		return `a location ({"lat": -90 to 90, "lon": -180 to 180})`
	}
	return expr.WithArticle(f.Type)
}

// reachable returns an error for an absent value whose path leads through something that is not an object: that is a
// wrong type.
func (s *streamDecoder) reachable(reason Reason, n *Node, path []string) error {
	for n, depth := n.parent, len(path)-1; depth > 0; n, depth = n.parent, depth-1 {
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

func (s *streamDecoder) degrees(slot int, limit float64) (float64, bool) {
	f, ok := s.data[slot].float()
	return f, ok && -limit <= f && f <= limit
}
