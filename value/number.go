package value

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"unsafe"
)

// Number is a parsed decimal number: digits times 10^exp.
type Number struct {
	digits   uint64 // without trailing zeros
	Exp      int
	negative bool
	wide     bool // more digits than fit
}

// maxExp is the bound of exponents: beyond it every number is 0 or overflows.
const maxExp = 1 << 20

// ParseNumber parses a number in JSON's syntax.
func ParseNumber(text []byte) (n Number, ok bool) {
	end := ScanNumber(text, 0)
	if end != len(text) || end == 0 {
		return Number{}, false
	}
	i := 0
	if text[0] == '-' {
		n.negative = true
		i++
	}
	zeros, point := 0, false
	for ; i < len(text) && text[i]|0x20 != 'e'; i++ {
		c := text[i]
		if c == '.' {
			point = true
			continue
		}
		if point {
			n.Exp--
		}
		if c == '0' {
			zeros++
			continue
		}
		for ; zeros > 0; zeros-- {
			n.push(0)
		}
		n.push(c - '0')
	}
	n.Exp += zeros
	if i < len(text) {
		n.Exp += parseExponent(text[i+1:])
	}
	if n.digits == 0 && !n.wide {
		return Number{}, true
	}
	return n, true
}

func (n *Number) push(digit byte) {
	high, low := bits.Mul64(n.digits, 10)
	sum, carry := bits.Add64(low, uint64(digit), 0)
	if high != 0 || carry != 0 {
		n.wide = true
	}
	n.digits = sum
}

func parseExponent(text []byte) int {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	exp := 0
	for _, c := range text {
		exp = min(exp*10+int(c-'0'), maxExp)
	}
	if negative {
		return -exp
	}
	return exp
}

// Fit tells how a number fits into an integer.
type Fit uint8

// The ways to fit.
const (
	Exact    Fit = iota // nothing is lost
	Fraction            // fractional digits are left
	Overflow            // it is beyond 64 bits
)

// Scaled returns the number times 10^scale, rounded towards minus infinity.
func (n Number) Scaled(scale int) (int64, Fit) {
	if n.wide {
		return 0, Overflow
	}
	magnitude, how := n.digits, Exact
	for exp := n.Exp + scale; exp != 0 && magnitude != 0; {
		if exp > 0 {
			high, low := bits.Mul64(magnitude, 10)
			if high != 0 {
				return 0, Overflow
			}
			magnitude = low
			exp--
			continue
		}
		if magnitude%10 != 0 {
			how = Fraction
		}
		magnitude /= 10
		exp++
	}
	if n.negative && how == Fraction {
		magnitude++
	}
	if n.negative && magnitude <= 1<<63 {
		return int64(-magnitude), how
	}
	if magnitude > math.MaxInt64 {
		return 0, Overflow
	}
	return int64(magnitude), how
}

// pow10 are the powers of ten; each is exact as a float too.
var pow10 = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// MaxScale is the greatest scale of a decimal.
const MaxScale = uint8(len(pow10) - 1)

// DecimalLiteral returns a number given as a float: the shortest number with the same float, which is the one written
// if that had at most 15 digits. It is an Int if it has no fraction.
func DecimalLiteral(f float64) Value {
	n, _ := ParseNumber(strconv.AppendFloat(nil, f, 'e', -1, 64))
	if v, ok := n.Decimal(); ok {
		return v
	}
	return Value{Type: Float, Flt: f}
}

// Decimal returns the number as an Int if it has no fraction, else as a Decimal with as many digits after the point as
// it has; ok is false if it is neither.
func (n Number) Decimal() (v Value, ok bool) {
	scale := max(0, -n.Exp)
	num, how := n.Scaled(scale)
	switch {
	case scale > int(MaxScale) || how != Exact:
		return Value{}, false
	case scale == 0:
		return Value{Type: Int, Num: num}, true
	}
	return Value{Type: Decimal, Num: num, Scale: uint8(scale)}, true
}

// Multiply is a·b; ok is false on overflow.
func Multiply(a, b int64) (int64, bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	// The signed product's high half: Hacker's Delight, 8-3.
	signed := int64(high) - (a>>63)&b - (b>>63)&a
	return int64(low), signed == int64(low)>>63
}

// Plus is a+b; ok is false on overflow.
func Plus(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

// Minus is a-b; ok is false on overflow.
func Minus(a, b int64) (int64, bool) {
	c := a - b
	return c, (c < a) == (b > 0)
}

// Rescale returns an Int or Decimal at a greater or equal scale; ok is false if it does not fit into 64 bits.
func Rescale(v *Value, scale uint8) (int64, bool) {
	if v.Wide() || scale == v.Scale {
		return v.Num, !v.Wide()
	}
	return Multiply(v.Num, pow10[scale-v.Scale])
}

// RescaleBig returns an Int or Decimal at a greater or equal scale.
func RescaleBig(v *Value, scale uint8) *big.Int {
	n := v.Big()
	return n.Mul(n, big.NewInt(pow10[scale-v.Scale]))
}

// CompareExact orders two values of type Int, Decimal or Timestamp.
func CompareExact(a, b *Value) int {
	scale := max(a.Scale, b.Scale)
	x, ok1 := Rescale(a, scale)
	y, ok2 := Rescale(b, scale)
	if !ok1 || !ok2 {
		return RescaleBig(a, scale).Cmp(RescaleBig(b, scale))
	}
	return cmp.Compare(x, y)
}

// Quotient returns the float nearest to a/b, for a b that is not 0. If both are exact, nothing else is rounded: 0.3/0.1 is
// 3, although it is less in floats.
func Quotient(a, b *Value) float64 {
	if a.Type == Float || b.Type == Float {
		return a.Float64() / b.Float64()
	}
	const whole = 1 << 53 // every int up to here is a float
	scale := max(a.Scale, b.Scale)
	x, ok1 := Rescale(a, scale)
	y, ok2 := Rescale(b, scale)
	if ok1 && ok2 && -whole <= x && x <= whole && -whole <= y && y <= whole {
		return float64(x) / float64(y)
	}
	f, _ := new(big.Rat).SetFrac(RescaleBig(a, scale), RescaleBig(b, scale)).Float64()
	return f
}

// ScanNumber returns the end of the number that starts at i, -1 if none does.
func ScanNumber(data []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(data) && IsDigit(data[i]) {
			i++
		}
		return i > start
	}
	if i < len(data) && data[i] == '-' {
		i++
	}
	if i < len(data) && data[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(data) && data[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

// IsDigit reports whether a byte is an ASCII decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

// ParseFloat parses a number in JSON's syntax as a float; ok is false if it is too great. Negative
// zero becomes zero: it would be a separate member of a set.
func ParseFloat(text []byte) (float64, bool) {
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	return f + 0, err == nil && !math.IsInf(f, 0)
}

// Nearest returns the integer nearest to a number in JSON's syntax times 10^shift, half away from zero, and whether it is
// exactly that. ok is false if the text is no number.
func Nearest(text []byte, shift int) (n int64, how Fit, ok bool) {
	end := ScanNumber(text, 0)
	if end != len(text) || end == 0 {
		return 0, Exact, false
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	whole := 0 // how many digits the integer has
	for whole < len(text) && IsDigit(text[whole]) {
		whole++
	}
	mantissa := whole
	for mantissa < len(text) && text[mantissa]|0x20 != 'e' {
		mantissa++
	}
	if whole += shift; mantissa < len(text) {
		whole += parseExponent(text[mantissa+1:])
	}
	magnitude, at, half := uint64(0), 0, false
	for _, c := range text[:mantissa] {
		if c == '.' {
			continue
		}
		if at >= whole {
			half = half || at == whole && c >= '5'
			if c != '0' {
				how = Fraction
			}
		} else if magnitude, ok = tenfold(magnitude, c-'0'); !ok {
			return 0, Overflow, true
		}
		at++
	}
	for ; at < whole && magnitude != 0; at++ {
		if magnitude, ok = tenfold(magnitude, 0); !ok {
			return 0, Overflow, true
		}
	}
	if half {
		magnitude++ // at most what tenfold allows, and one
	}
	switch {
	case negative && magnitude <= 1<<63:
		return int64(-magnitude), how, true
	case magnitude > math.MaxInt64:
		return 0, Overflow, true
	}
	return int64(magnitude), how, true
}

// tenfold returns 10·n and a digit; ok is false if that is beyond 2^63.
func tenfold(n uint64, digit byte) (_ uint64, ok bool) {
	const most = 1 << 63
	if n > most/10 {
		return 0, false
	}
	n = 10*n + uint64(digit)
	return n, n <= most
}

// Rounded returns the Decimal of a scale that is nearest to a number in JSON's syntax, half away from zero; ok is false if the
// text is no number, or the decimal does not fit into 64 bits.
func Rounded(text []byte, scale uint8) (v Value, ok bool) {
	num, how, ok := Nearest(text, int(scale))
	if !ok || how == Overflow {
		return Value{}, false
	}
	return Value{Type: Decimal, Num: num, Scale: scale}, true
}
