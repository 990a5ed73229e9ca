// Package value holds typed values: their text, order and arithmetic.
package value

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// Type is the type of a field and of the values in it.
type Type uint8

// The types of the feature language. Null is the type of an absent value.
const (
	Null Type = iota
	String
	Int
	Float
	Decimal
	Bool
	Timestamp
	Location
)

var typeNames = [...]string{"null", "string", "int", "float", "decimal", "bool", "timestamp", "location"}

// String returns the type's name in a definitions file.
func (t Type) String() string { return typeNames[t] }

// ParseType finds a type by its name in a definitions file; Null has none.
func ParseType(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name && Type(t) != Null {
			return Type(t), true
		}
	}
	return Null, false
}

// Numeric reports whether values of the type can be added.
func (t Type) Numeric() bool { return t == Int || t == Float || t == Decimal }

// Value is one typed scalar. The zero Value is null.
type Value struct {
	Type  Type
	Scale uint8 // Decimal: fractional digits
	// Num is an Int; a Decimal times 10^Scale; a Timestamp in milliseconds
	// since 1970; a Bool as 0 or 1.
	Num int64
	// Carry is what a sum has beyond the 64 bits of Num, in units of 2^64; see Wide.
	Carry int64
	Flt   float64 // Float; of a Location the latitude, in degrees
	Lon   float64 // of a Location the longitude, in degrees
	Str   []byte  // String; may alias the record it was read from
}

// IsNull reports whether there is no value.
func (v Value) IsNull() bool { return v.Type == Null }

// Float64 returns the value as the nearest float: decimals unscaled, timestamps in milliseconds. It is 0 if the value is
// not a number.
func (v Value) Float64() float64 {
	switch {
	case v.Type == Float:
		return v.Flt
	case v.Wide():
		return v.wideFloat()
	case v.Type == Decimal && -1<<53 <= v.Num && v.Num <= 1<<53:
		return float64(v.Num) / float64(pow10[v.Scale]) // both are exact, so this rounds once
	case v.Type == Decimal:
		var text [40]byte
		f, _ := strconv.ParseFloat(string(AppendDecimal(text[:0], v.Num, v.Scale)), 64)
		return f
	default:
		return float64(v.Num)
	}
}

// AppendText appends the value as plain text, its form in an entity's key and among the members of
// a set. Decimals have no trailing zeros, so equal numbers have equal text.
func (v *Value) AppendText(dst []byte) []byte {
	if v.Wide() {
		return v.appendWide(dst)
	}
	switch v.Type {
	case String:
		return append(dst, v.Str...)
	case Int, Timestamp:
		return strconv.AppendInt(dst, v.Num, 10)
	case Decimal:
		return AppendDecimal(dst, v.Num, v.Scale)
	case Float:
		return strconv.AppendFloat(dst, v.Flt, 'g', -1, 64)
	case Bool:
		return strconv.AppendBool(dst, v.Num != 0)
	case Location:
		dst = strconv.AppendFloat(dst, v.Flt, 'f', -1, 64)
		dst = append(dst, ',')
		return strconv.AppendFloat(dst, v.Lon, 'f', -1, 64)
	default:
		return dst
	}
}

// AppendDecimal appends unscaled / 10^scale without trailing fractional zeros: 16660 at scale 2 is
// 166.6.
func AppendDecimal(dst []byte, unscaled int64, scale uint8) []byte {
	if unscaled == 0 {
		return append(dst, '0')
	}
	magnitude := uint64(unscaled)
	if unscaled < 0 {
		dst = append(dst, '-')
		magnitude = -magnitude
	}
	var digits [40]byte
	return appendPoint(dst, strconv.AppendUint(digits[:0], magnitude, 10), scale)
}

// appendPoint appends digits with a decimal point before the last `scale` ones, without trailing
// zeros after it.
func appendPoint(dst, text []byte, scale uint8) []byte {
	for scale > 0 && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
		scale--
	}
	if scale == 0 {
		return append(dst, text...)
	}
	if whole := len(text) - int(scale); whole > 0 {
		dst = append(dst, text[:whole]...)
		dst = append(dst, '.')
		return append(dst, text[whole:]...)
	}
	dst = append(dst, '0', '.')
	for range int(scale) - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

// Compare orders two values of one type; it is negative if a comes first.
func Compare(a, b Value) int {
	switch a.Type {
	case Float:
		return cmp.Compare(a.Flt, b.Flt)
	case String:
		return bytes.Compare(a.Str, b.Str)
	default:
		aHigh, aLow := a.words()
		bHigh, bLow := b.words()
		return cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow))
	}
}

// Add returns the sum of two numbers of one type and scale. Ints and decimals are added in 128 bits. A sum that has
// reached the bounds of its type stays there, see Saturated.
func Add(a, b Value) Value {
	if a.Type != Float {
		return addSums(a, b)
	}
	if a.Flt += b.Flt; math.IsNaN(a.Flt) { // of both infinities
		a.Flt = math.Inf(1)
	}
	return a
}

// Saturated reports whether a sum has left the range of its type, 128 bits for an Int or Decimal; its value is lost.
func (v Value) Saturated() bool {
	if v.Type == Float {
		return math.IsInf(v.Flt, 0)
	}
	return v.Carry != 0 && (v.is(greatestSum) || v.is(leastSum))
}

// Finite returns the value, or the greatest float of its sign if it is infinite.
func (v Value) Finite() Value {
	v.Flt = max(-math.MaxFloat64, min(math.MaxFloat64, v.Flt))
	return v
}
