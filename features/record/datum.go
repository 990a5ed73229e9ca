package record

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"unicode/utf8"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// Datum is a value in a record, before a field gives it a type.
type Datum struct {
	Type DatumType
	// Unit is the unit of a Number that its format knows to be a timestamp; it takes precedence
	// over the field's unit.
	Unit TimeUnit
	// UTF8 means that Text is known to be valid UTF-8. Otherwise the field that reads it checks that.
	UTF8 bool
	// Text is for a Number what JSON would write, for a String or an Untyped its content.
	Text []byte
}

// DatumType is the type of a Datum in its format.
type DatumType uint8

// The types.
const (
	Absent DatumType = iota
	Null
	True
	False
	Number
	String
	// Untyped is a text without a type in its format, such as the cell of a CSV: it is read as
	// whatever type the field takes.
	Untyped
	Object
	Array
	// NotFinite is a float that is NaN or infinite.
	NotFinite
)

var datumTypeNames = [...]string{
	"nothing", "null", "a bool", "a bool", "a number", "a string", "a text", "an object", "an array", "NaN or an infinity",
}

func (t DatumType) String() string { return datumTypeNames[t] }

// isText reports whether it is a text, typed or not.
func (d *Datum) isText() bool { return d.Type == String || d.Type == Untyped }

// isNumber reports whether it may be a number.
func (d *Datum) isNumber() bool { return d.Type == Number || d.Type == Untyped }

// validUTF8 reports whether its text is valid UTF-8.
func (d *Datum) validUTF8() bool { return d.UTF8 || utf8.Valid(d.Text) }

// number returns its value as a number.
func (d *Datum) number() (value.Number, bool) {
	if !d.isNumber() {
		return value.Number{}, false
	}
	return value.ParseNumber(d.Text)
}

// float returns its value as a float.
func (d *Datum) float() (float64, bool) {
	if !d.isNumber() || d.Type == Untyped && !d.writtenAsNumber() {
		return 0, false
	}
	return value.ParseFloat(d.Text)
}

// writtenAsNumber reports whether the text is a number in JSON's syntax.
func (d *Datum) writtenAsNumber() bool {
	return len(d.Text) > 0 && value.ScanNumber(d.Text, 0) == len(d.Text)
}

// base64 returns the integer of at most 64 bits that its text encodes: big-endian, in two's complement, in base64.
func (d *Datum) base64() (n int64, ok bool) {
	var buffer [maxDecimal]byte
	digits, ok := d.bytes(&buffer)
	return integer(digits), ok && len(digits) <= 8
}

// appendBase64 appends the digits of the integer that base64 returns, of any number of bits.
func (d *Datum) appendBase64(dst []byte) ([]byte, bool) {
	var buffer [maxDecimal]byte
	digits, ok := d.bytes(&buffer)
	if !ok {
		return dst, false
	}
	return appendDecimal(dst, digits, 0), true
}

// bytes decodes its text, without bytes beyond eight that only repeat a sign.
func (d *Datum) bytes(buffer *[maxDecimal]byte) (digits []byte, ok bool) {
	if !d.isText() || len(d.Text) == 0 || base64.StdEncoding.DecodedLen(len(d.Text)) > len(buffer) {
		return nil, false
	}
	length, err := base64.StdEncoding.Strict().Decode(buffer[:], d.Text)
	if err != nil {
		return nil, false
	}
	return minimal(buffer[:length]), true
}

// maxScale is the greatest scale of a decimal that has one of its own; databases allow far less.
const maxScale = 1000

// scaledReader reads decimals that are objects in JSON with a scale and, as value, an integer in base64, as
// Debezium writes columns without a fixed scale.
type scaledReader struct {
	scanner      Scanner
	record       Record
	values       []Datum // by slot
	scale, value int     // slots
	text         []byte
}

func newScaledReader() *scaledReader {
	tree := &Node{}
	scale, of := tree.add([]string{"scale"}), tree.add([]string{"value"})
	r := &scaledReader{values: make([]Datum, tree.number(0)), scanner: JSON.NewScanner(tree)}
	r.scale, r.value = scale.slot, of.slot
	return r
}

// read returns the decimal that an object is, as a number in JSON's syntax, valid until the next call.
func (r *scaledReader) read(d *Datum) (number []byte, ok bool) {
	if d.Type != Object || len(d.Text) == 0 {
		return nil, false
	}
	clear(r.values)
	r.record.Value = d.Text
	if r.scanner.Scan(&r.record, r.values) != nil || r.values[r.scale].Type != Number {
		return nil, false
	}
	scale, _ := value.ParseNumber(r.values[r.scale].Text)
	places, how := scale.Scaled(0)
	if r.text, ok = r.values[r.value].appendBase64(r.text[:0]); !ok || how != value.Exact || places < -maxScale || places > maxScale {
		return nil, false
	}
	r.text = strconv.AppendInt(append(r.text, 'e'), -places, 10)
	return r.text, true
}

// truth returns its value as a bool.
func (d *Datum) truth() (truth, ok bool) {
	switch d.Type {
	case True, False:
		return d.Type == True, true
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

// value returns its value if there is no field. Objects and arrays have none.
func (d *Datum) value() value.Value {
	switch d.Type {
	case True, False:
		return expr.Truth(d.Type == True)
	case String, Untyped:
		if d.validUTF8() {
			return value.Value{Type: value.String, Str: d.Text}
		}
	case Number:
		n, _ := value.ParseNumber(d.Text)
		if v, ok := n.Decimal(); ok {
			return v
		}
		if f, ok := value.ParseFloat(d.Text); ok {
			return value.Value{Type: value.Float, Flt: f}
		}
	}
	return value.Value{}
}

// describe names a datum in a message: numbers by value, everything else by type.
func (d *Datum) describe() string {
	if d.isText() && len(d.Text) == 0 {
		return "an empty text"
	}
	if d.Type != Number && (d.Type != Untyped || !d.writtenAsNumber()) {
		return d.Type.String()
	}
	const most = 40
	if len(d.Text) > most {
		return string(d.Text[:most]) + "…"
	}
	return string(d.Text)
}

// textMemory holds the texts that scanners build because the record does not contain them literally: append to text,
// then call hold.
type textMemory struct{ text []byte }

// reset discards all texts.
func (m *textMemory) reset() { m.text = m.text[:0] }

// hold keeps the appended text, and returns what was appended.
func (m *textMemory) hold(text []byte) []byte {
	from := len(m.text)
	m.text = text
	return text[from:len(text):len(text)]
}
