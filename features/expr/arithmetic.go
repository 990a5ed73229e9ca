package expr

import (
	"math"
	"math/big"

	"github.com/weir-stream/weir/value"
)

// operation is one of + - * / %.
type operation struct {
	exact  func(a, b value.Value) (value.Value, bool) // nil: the result is a float
	floats func(a, b *value.Value) float64
	// times returns the type of a result with timestamps; nil: there is none.
	times func(a, b value.Type) (value.Type, bool)
}

var (
	addition    = operation{exact: addExact, floats: func(a, b *value.Value) float64 { return a.Float64() + b.Float64() }, times: later}
	subtract    = operation{exact: subtractExact, floats: func(a, b *value.Value) float64 { return a.Float64() - b.Float64() }, times: between}
	times       = operation{exact: multiplyExact, floats: func(a, b *value.Value) float64 { return a.Float64() * b.Float64() }}
	divide      = operation{floats: value.Quotient}
	remainder   = operation{exact: remainderExact}
	arithmetics = map[string]operation{"+": addition, "-": subtract, "*": times, "/": divide, "%": remainder}
)

// typ returns the type of the result. The difference of timestamps is an int, in milliseconds, and an int may be added to a
// timestamp or subtracted from it.
func (o operation) typ(a, b value.Type) (value.Type, bool) {
	switch {
	case o.times != nil && (a == value.Timestamp || b == value.Timestamp):
		return o.times(a, b)
	case a != value.Null && !a.Numeric() || b != value.Null && !b.Numeric():
		return value.Null, false
	case o.floats == nil:
		return value.Int, assignable(a, value.Int) && assignable(b, value.Int)
	case o.exact == nil:
		return value.Float, true
	case a == value.Null || b == value.Null:
		return value.Null, true
	}
	return common(a, b)
}

// later is times of an addition.
func later(a, b value.Type) (value.Type, bool) {
	return value.Timestamp, a == value.Timestamp && b == value.Int || a == value.Int && b == value.Timestamp
}

// between is times of a subtraction.
func between(a, b value.Type) (value.Type, bool) {
	if a == value.Timestamp && b == value.Timestamp {
		return value.Int, true
	}
	return value.Timestamp, a == value.Timestamp && b == value.Int
}

func arithmetic(f *frame, op *operation, a, b *value.Value) value.Value {
	if op.times != nil && (a.Type == value.Timestamp || b.Type == value.Timestamp) {
		typ, ok := op.times(a.Type, b.Type)
		v, fits := op.exact(*a, *b)
		switch v.Type = typ; {
		case !ok:
			return value.Value{}
		case !fits || v.Wide():
			return f.fail(ErrOverflow)
		}
		return v
	}
	switch {
	case !a.Type.Numeric() || !b.Type.Numeric():
		return value.Value{}
	case op.floats == nil && (a.Type != value.Int || b.Type != value.Int):
		return value.Value{}
	case op.exact == nil || a.Type == value.Float || b.Type == value.Float:
		if op.exact == nil && b.Float64() == 0 {
			return value.Value{}
		}
		r := op.floats(a, b)
		if math.IsInf(r, 0) || math.IsNaN(r) {
			return f.fail(ErrOverflow)
		}
		return value.Value{Type: value.Float, Flt: r + 0} // -0 is 0
	}
	v, ok := op.exact(*a, *b)
	if !ok {
		return f.fail(ErrOverflow)
	}
	return v
}

// exactType is Int for two ints, else Decimal.
func exactType(a, b value.Value) value.Type { return max(a.Type, b.Type) }

// Ints and decimals are computed in 64 bits or, if these do not suffice, in 128, the width of sums.
// ok is false if the result is wider.

func addExact(a, b value.Value) (value.Value, bool) { return exactly(a, b, value.Plus, (*big.Int).Add) }

func subtractExact(a, b value.Value) (value.Value, bool) {
	return exactly(a, b, value.Minus, (*big.Int).Sub)
}

// exactly computes in the greater of two scales.
func exactly(a, b value.Value, narrow func(x, y int64) (int64, bool), wide func(z, x, y *big.Int) *big.Int) (value.Value, bool) {
	scale := max(a.Scale, b.Scale)
	x, ok1 := value.Rescale(&a, scale)
	y, ok2 := value.Rescale(&b, scale)
	if ok1 && ok2 {
		if n, ok := narrow(x, y); ok {
			return value.Value{Type: exactType(a, b), Num: n, Scale: scale}, true
		}
	}
	return value.OfBig(exactType(a, b), scale, wide(new(big.Int), value.RescaleBig(&a, scale), value.RescaleBig(&b, scale)))
}

func multiplyExact(a, b value.Value) (value.Value, bool) {
	scale := a.Scale + b.Scale
	if n, ok := value.Multiply(a.Num, b.Num); ok && scale <= value.MaxScale && !a.Wide() && !b.Wide() {
		return value.Value{Type: exactType(a, b), Num: n, Scale: scale}, true
	}
	n, rest := new(big.Int).Mul(a.Big(), b.Big()), new(big.Int)
	for ; scale > value.MaxScale; scale-- {
		if n.QuoRem(n, big.NewInt(10), rest); rest.Sign() != 0 {
			return value.Value{}, false
		}
	}
	return value.OfBig(exactType(a, b), scale, n)
}

func remainderExact(a, b value.Value) (value.Value, bool) {
	switch {
	case b.Num == 0 && !b.Wide():
		return value.Value{}, true
	case a.Wide() || b.Wide():
		return value.OfBig(value.Int, 0, new(big.Int).Rem(a.Big(), b.Big()))
	case b.Num == -1: // the least int cannot be negated
		return value.Value{Type: value.Int}, true
	}
	return value.Value{Type: value.Int, Num: a.Num % b.Num}, true
}
