package record

import (
	"bytes"
	"unicode/utf8"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// Datum is a value as it stands in a record, before a field gives it a type.
type Datum struct {
	Kind Kind
	// Unit is that of a Number which its format knows to be a moment; it goes before
	// the unit that a field names.
	Unit TimeUnit
	// Text is of a Number what JSON would write, of a String or an Untyped its
	// content; whether it is valid UTF-8 the field looks that reads it.
	Text []byte
}

// Kind is what a Datum is.
type Kind uint8

// The kinds.
const (
	Absent Kind = iota
	Null
	True
	False
	Number
	String
	// Untyped is a text of which the format does not know the type, as the cell of
	// a CSV: it is read as whatever the field takes.
	Untyped
	Object
	Array
	// NotFinite is a float that is no number, or infinite.
	NotFinite
)

var kindNames = [...]string{
	"nothing", "null", "a bool", "a bool", "a number", "a string", "a text", "an object", "an array", "NaN or an infinity",
}

func (k Kind) String() string { return kindNames[k] }

// isText says whether it is a text, whether or not the format knows its type.
func (d *Datum) isText() bool { return d.Kind == String || d.Kind == Untyped }

// isNumber says whether it may be a number.
func (d *Datum) isNumber() bool { return d.Kind == Number || d.Kind == Untyped }

// number is the number that it is.
func (d *Datum) number() (value.Number, bool) {
	if !d.isNumber() {
		return value.Number{}, false
	}
	return value.ParseNumber(d.Text)
}

// float is the number that it is as a float.
func (d *Datum) float() (float64, bool) {
	if !d.isNumber() || d.Kind == Untyped && !d.writtenAsNumber() {
		return 0, false
	}
	return value.ParseFloat(d.Text)
}

// writtenAsNumber says whether the text is a number as JSON writes them.
func (d *Datum) writtenAsNumber() bool {
	return len(d.Text) > 0 && value.ScanNumber(d.Text, 0) == len(d.Text)
}

// truth is the bool that it is.
func (d *Datum) truth() (truth, ok bool) {
	switch d.Kind {
	case True, False:
		return d.Kind == True, true
	case Untyped:
		for _, text := range [...]string{"true", "1"} {
			if bytes.EqualFold(d.Text, []byte(text)) {
				return true, true
			}
		}
		return false, bytes.EqualFold(d.Text, []byte("false")) || string(d.Text) == "0"
	}
	return false, false
}

// value is the value without a field. Objects and arrays have none.
func (d *Datum) value() value.Value {
	switch d.Kind {
	case True, False:
		return expr.Truth(d.Kind == True)
	case String, Untyped:
		if utf8.Valid(d.Text) {
			return value.Value{Type: value.String, Str: d.Text}
		}
	case Number:
		n, _ := value.ParseNumber(d.Text)
		scale := max(0, -n.Exp)
		if num, how := n.Scaled(scale); how == value.Exact && scale <= int(value.MaxScale) {
			if scale == 0 {
				return value.Value{Type: value.Int, Num: num}
			}
			return value.Value{Type: value.Decimal, Num: num, Scale: uint8(scale)}
		}
		if f, ok := value.ParseFloat(d.Text); ok {
			return value.Value{Type: value.Float, Flt: f}
		}
	}
	return value.Value{}
}

// describe says in a message what was found: numbers by themselves, the others by
// their kinds.
func (d *Datum) describe() string {
	if d.Kind != Number && (d.Kind != Untyped || !d.writtenAsNumber()) {
		return d.Kind.String()
	}
	const most = 40
	if len(d.Text) > most {
		return string(d.Text[:most]) + "…"
	}
	return string(d.Text)
}

// textMemory is where scanners keep texts that do not stand in the record as they are: appended
// to text, and taken by hold.
type textMemory struct{ text []byte }

// reset gives up all texts.
func (m *textMemory) reset() { m.text = m.text[:0] }

// hold keeps what was appended to text, and is what was appended.
func (m *textMemory) hold(text []byte) []byte {
	from := len(m.text)
	m.text = text
	return text[from:len(text):len(text)]
}
