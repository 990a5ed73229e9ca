package features

import (
	"math"
	"math/big"

	"github.com/weir-stream/weir/features/kinds"
)

// operation is one of + - * / %.
type operation struct {
	exact  func(a, b kinds.Value) (kinds.Value, bool) // nil: by floats
	floats func(a, b float64) float64
}

var (
	addition    = operation{exact: addExact, floats: func(a, b float64) float64 { return a + b }}
	subtract    = operation{exact: subtractExact, floats: func(a, b float64) float64 { return a - b }}
	times       = operation{exact: multiplyExact, floats: func(a, b float64) float64 { return a * b }}
	divide      = operation{floats: func(a, b float64) float64 { return a / b }}
	remainder   = operation{exact: remainderExact}
	arithmetics = map[string]operation{"+": addition, "-": subtract, "*": times, "/": divide, "%": remainder}
)

// typ is the type of the operation's result.
func (o operation) typ(a, b kinds.Type) (kinds.Type, bool) {
	switch {
	case a != kinds.Null && !a.Numeric() || b != kinds.Null && !b.Numeric():
		return kinds.Null, false
	case o.floats == nil:
		return kinds.Int, assignable(a, kinds.Int) && assignable(b, kinds.Int)
	case o.exact == nil:
		return kinds.Float, true
	case a == kinds.Null || b == kinds.Null:
		return kinds.Null, true
	}
	return common(a, b)
}

func arithmetic(f *frame, op operation, a, b kinds.Value) kinds.Value {
	switch {
	case !a.Type.Numeric() || !b.Type.Numeric():
		return kinds.Value{}
	case op.floats == nil && (a.Type != kinds.Int || b.Type != kinds.Int):
		return kinds.Value{}
	case op.exact == nil || a.Type == kinds.Float || b.Type == kinds.Float:
		if op.exact == nil && b.Float64() == 0 {
			return kinds.Value{}
		}
		r := op.floats(a.Float64(), b.Float64())
		if math.IsInf(r, 0) || math.IsNaN(r) {
			return f.fail(errOverflow)
		}
		return kinds.Value{Type: kinds.Float, Flt: r + 0} // -0 is 0
	}
	v, ok := op.exact(a, b)
	if !ok {
		return f.fail(errOverflow)
	}
	return v
}

// exactType is Int for two ints, else Decimal.
func exactType(a, b kinds.Value) kinds.Type { return max(a.Type, b.Type) }

// Ints and decimals are computed in 64 bits, and where that does not do in 128, which
// is as wide as sums are. Not ok is what is wider still.

func addExact(a, b kinds.Value) (kinds.Value, bool) { return exactly(a, b, plus, (*big.Int).Add) }

func subtractExact(a, b kinds.Value) (kinds.Value, bool) { return exactly(a, b, minus, (*big.Int).Sub) }

// exactly computes what has the greater of two scales.
func exactly(a, b kinds.Value, narrow func(x, y int64) (int64, bool), wide func(z, x, y *big.Int) *big.Int) (kinds.Value, bool) {
	scale := max(a.Scale, b.Scale)
	x, ok1 := rescale(&a, scale)
	y, ok2 := rescale(&b, scale)
	if ok1 && ok2 {
		if n, ok := narrow(x, y); ok {
			return kinds.Value{Type: exactType(a, b), Num: n, Scale: scale}, true
		}
	}
	return kinds.OfBig(exactType(a, b), scale, wide(new(big.Int), rescaleBig(&a, scale), rescaleBig(&b, scale)))
}

func multiplyExact(a, b kinds.Value) (kinds.Value, bool) {
	scale := a.Scale + b.Scale
	if n, ok := multiply(a.Num, b.Num); ok && scale <= maxScale && !a.Wide() && !b.Wide() {
		return kinds.Value{Type: exactType(a, b), Num: n, Scale: scale}, true
	}
	n, rest := new(big.Int).Mul(a.Big(), b.Big()), new(big.Int)
	for ; scale > maxScale; scale-- {
		if n.QuoRem(n, big.NewInt(10), rest); rest.Sign() != 0 {
			return kinds.Value{}, false
		}
	}
	return kinds.OfBig(exactType(a, b), scale, n)
}

func remainderExact(a, b kinds.Value) (kinds.Value, bool) {
	switch {
	case b.Num == 0 && !b.Wide():
		return kinds.Value{}, true
	case a.Wide() || b.Wide():
		return kinds.OfBig(kinds.Int, 0, new(big.Int).Rem(a.Big(), b.Big()))
	case b.Num == -1: // the least int has no opposite
		return kinds.Value{Type: kinds.Int}, true
	}
	return kinds.Value{Type: kinds.Int, Num: a.Num % b.Num}, true
}
