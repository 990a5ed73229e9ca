package expr

import (
	"cmp"
	"errors"
	"math"
	"math/big"

	"github.com/weir-stream/weir/value"
)

// numberFunctions are those of numbers, and those that choose between values of any one type:
//
//	abs(x)                    without its sign; the type stays
//	round(x[, digits])        to that many digits after the point, half away from zero; the type stays. Floats have their
//	                          shortest digits
//	floor(x), ceil(x)         the next whole number below or above; the type stays
//	sqrt(x), exp(x), log(x)   floats; log is the natural logarithm. Null outside of the domain
//	pow(x, y)                 x to the power of y, a float
//	min(a, b, …), max(a, b, …)  the least and the greatest; null if one is null
//	coalesce(a, b, …)         the first that is not null
//	int(x)                    a number without its fraction, a bool as 0 or 1, a timestamp in ms, the number that a text is
//	float(x)                  a number, or the number that a text is
//	decimal(x, scale)         the same, rounded to that many digits after the point
var numberFunctions = map[string]function{
	"abs":      kept("x", absolute),
	"floor":    kept("x", func(f *frame, v *value.Value) value.Value { return rounded(f, v, 0, math.Floor, false, -1) }),
	"ceil":     kept("x", func(f *frame, v *value.Value) value.Value { return rounded(f, v, 0, math.Ceil, false, 1) }),
	"round":    {arguments: "x[, digits]", optional: 1, takes: []value.Type{value.Null, value.Int}, gives: givesNumber, prepare: prepareRound},
	"sqrt":     ofFloat(math.Sqrt),
	"exp":      ofFloat(math.Exp),
	"log":      ofFloat(value.Log),
	"pow":      of("x, y", value.Float, power, value.Float, value.Float),
	"min":      {arguments: "a, b, …", optional: 2, repeats: true, takes: []value.Type{value.Null}, gives: givesOrdered, prepare: chosen(-1)},
	"max":      {arguments: "a, b, …", optional: 2, repeats: true, takes: []value.Type{value.Null}, gives: givesOrdered, prepare: chosen(1)},
	"coalesce": {arguments: "a, b, …", optional: 2, repeats: true, takes: []value.Type{value.Null}, nulls: true, gives: givesCommon, prepare: prepared(firstGiven)},
	"int":      of("x", value.Int, toInt, value.Null),
	"float":    of("x", value.Float, toFloat, value.Null),
	"decimal":  {arguments: "x, scale", optional: 2, takes: []value.Type{value.Null, value.Int}, gives: givesDecimal, prepare: prepareDecimal},
}

func prepared(do apply) func(*exprCompiler, []term) (apply, error) {
	return func(*exprCompiler, []term) (apply, error) { return do, nil }
}

// kept returns a function of a number whose result has the type of the number.
func kept(argument string, do func(*frame, *value.Value) value.Value) function {
	return function{arguments: argument, optional: 1, takes: []value.Type{value.Null}, gives: givesNumber, prepare: prepared(
		func(f *frame, args []*value.Value) value.Value {
			if !args[0].Type.Numeric() {
				return value.Value{}
			}
			return do(f, args[0])
		})}
}

// givesNumber is gives of a function that keeps the type of its first argument, a number.
func givesNumber(args []term) (value.Type, uint8, error) {
	if t := args[0].typ; t != value.Null && !t.Numeric() {
		return value.Null, 0, &argumentError{0, "it takes a number, not " + WithArticle(t)}
	}
	return args[0].typ, args[0].scale, nil
}

func absolute(f *frame, v *value.Value) value.Value {
	switch {
	case v.Type == value.Float:
		return value.Value{Type: value.Float, Flt: math.Abs(v.Flt)}
	case v.Num >= 0 && !v.Wide():
		return *v
	case !v.Wide():
		if n, ok := value.Minus(0, v.Num); ok {
			return value.Value{Type: v.Type, Num: n, Scale: v.Scale}
		}
	}
	return exactOf(f, v.Type, v.Scale, new(big.Int).Abs(v.Big()))
}

// exactOf returns an Int or a Decimal, or fails if it is too large.
func exactOf(f *frame, t value.Type, scale uint8, n *big.Int) value.Value {
	v, ok := value.OfBig(t, scale, n)
	if !ok {
		return f.fail(ErrOverflow)
	}
	return v
}

// rounded rounds a number to digits after the point: floats as a function does; others half away from zero, or else towards
// a side of zero, -1 or 1; 0 for zero itself.
func rounded(f *frame, v *value.Value, digits uint8, float func(float64) float64, half bool, side int) value.Value {
	if v.Type == value.Float {
		return value.Value{Type: value.Float, Flt: float(v.Flt) + 0} // -0 is 0
	}
	if v.Scale <= digits {
		return *v
	}
	unit := int64(math.Pow10(int(v.Scale - digits))) // exact, as of all powers of ten that a scale has
	if !v.Wide() {                                   // without allocations, which each event would make
		n, rest := v.Num/unit, v.Num%unit
		sign := cmp.Compare(rest, 0)
		if half && max(rest, -rest) >= unit/2 || !half && sign == side {
			n += int64(sign)
		}
		return value.Value{Type: v.Type, Scale: digits, Num: n}
	}
	n, rest := new(big.Int).QuoRem(v.Big(), big.NewInt(unit), new(big.Int))
	if half && rest.CmpAbs(big.NewInt(unit/2)) >= 0 || !half && rest.Sign() == side {
		n.Add(n, big.NewInt(int64(rest.Sign())))
	}
	return exactOf(f, v.Type, digits, n)
}

// roundedFloat rounds what the shortest digits of x say half away from zero, to digits after the point, and returns the
// nearest float: 1.005 is a little less in binary.
func roundedFloat(x float64, digits uint8) float64 {
	if digits == 0 {
		return math.Round(x) // what the shortest digits give as a half is one
	}
	factor := math.Pow10(int(digits))
	// The shortest digits differ from x by 2^-53 of it at most, and so does the product from that of x. What is farther from
	// a half, which is below 2^51 then, needs no digits; the quotient is rounded once.
	scaled := x * factor
	magnitude := math.Abs(scaled)
	if math.Abs(magnitude-math.Floor(magnitude)-0.5) > magnitude*0x1p-51 {
		return math.Round(scaled) / factor
	}
	var memory [32]byte
	v := value.Value{Type: value.Float, Flt: x}
	n, how, ok := value.Nearest(v.AppendText(memory[:0]), int(digits))
	if !ok || how == value.Overflow {
		return x // it has 17 digits at most, none of them so far after the point
	}
	v = value.Value{Type: value.Decimal, Num: n, Scale: digits}
	return v.Float64()
}

func prepareRound(_ *exprCompiler, args []term) (apply, error) {
	digits := int64(0)
	if len(args) > 1 {
		var err error
		if digits, err = wholeLiteral(args, 1, "digits", 0, int64(value.MaxScale)); err != nil {
			return nil, err
		}
	}
	float := func(x float64) float64 { return roundedFloat(x, uint8(digits)) }
	return func(f *frame, args []*value.Value) value.Value {
		if !args[0].Type.Numeric() {
			return value.Value{}
		}
		return rounded(f, args[0], uint8(digits), float, true, 0)
	}, nil
}

func ofFloat(do func(float64) float64) function {
	return of("x", value.Float, func(f *frame, args []*value.Value) value.Value {
		return finite(f, do(args[0].Float64()))
	}, value.Float)
}

// finite returns a float; what is none is null, and what is too large fails.
func finite(f *frame, x float64) value.Value {
	switch {
	case math.IsNaN(x) || math.IsInf(x, -1):
		return value.Value{}
	case math.IsInf(x, 1):
		return f.fail(ErrOverflow)
	}
	return value.Value{Type: value.Float, Flt: x + 0}
}

func power(f *frame, args []*value.Value) value.Value {
	x, y := args[0].Float64(), args[1].Float64()
	if x == 0 && y < 0 {
		return value.Value{} // a division by zero
	}
	r := math.Pow(x, y)
	if math.IsInf(r, -1) {
		return f.fail(ErrOverflow)
	}
	return finite(f, r)
}

var errTypes = errors.New("its arguments must have one type")

// givesCommon is gives of a function that returns one of its arguments.
func givesCommon(args []term) (typ value.Type, scale uint8, err error) {
	for i, arg := range args {
		of, ok := common(typ, arg.typ)
		if !ok {
			return value.Null, 0, &argumentError{i, errTypes.Error() + ", not " + WithArticle(typ) + " and " + WithArticle(arg.typ)}
		}
		typ, scale = of, max(scale, arg.scale)
	}
	return typ, scale, nil
}

func givesOrdered(args []term) (value.Type, uint8, error) {
	typ, scale, err := givesCommon(args)
	if err == nil && typ == value.Location {
		err = &argumentError{0, "locations have no order"}
	}
	return typ, scale, err
}

// chosen prepares the choice of the argument whose order to each other has a sign.
func chosen(sign int) func(*exprCompiler, []term) (apply, error) {
	return prepared(func(_ *frame, args []*value.Value) value.Value {
		best := args[0]
		for _, v := range args[1:] {
			order, ok := compare(v, best)
			if !ok {
				return value.Value{}
			}
			if order == sign {
				best = v
			}
		}
		return *best
	})
}

func firstGiven(_ *frame, args []*value.Value) value.Value {
	for _, v := range args {
		if !v.IsNull() {
			return *v
		}
	}
	return value.Value{}
}

func toInt(f *frame, args []*value.Value) value.Value {
	switch v := args[0]; v.Type {
	case value.Int, value.Bool, value.Timestamp:
		of := *v
		of.Type = value.Int
		return of
	case value.Decimal:
		of := rounded(f, v, 0, nil, false, 0) // towards zero
		of.Type = value.Int
		return of
	case value.Float:
		n := math.Trunc(v.Flt)
		if n < -1<<63 || n >= 1<<63 {
			return f.fail(ErrOverflow)
		}
		return intOf(int64(n))
	case value.String:
		if n, ok := value.ParseNumber(v.Str); ok {
			if num, how := n.Scaled(0); how == value.Exact {
				return intOf(num)
			}
		}
	}
	return value.Value{}
}

func toFloat(_ *frame, args []*value.Value) value.Value {
	switch v := args[0]; {
	case v.Type.Numeric():
		return value.Value{Type: value.Float, Flt: v.Float64()}
	case v.Type == value.String:
		if x, ok := value.ParseFloat(v.Str); ok && value.ScanNumber(v.Str, 0) == len(v.Str) {
			return value.Value{Type: value.Float, Flt: x + 0}
		}
	}
	return value.Value{}
}

func givesDecimal(args []term) (value.Type, uint8, error) {
	scale, err := wholeLiteral(args, 1, "scale", 0, int64(value.MaxScale))
	return value.Decimal, uint8(scale), err
}

func prepareDecimal(_ *exprCompiler, args []term) (apply, error) {
	scale := uint8(args[1].constant().Num)
	return func(f *frame, args []*value.Value) value.Value {
		v := *args[0]
		if v.Type == value.String || v.Type == value.Float {
			text, memory := v.Str, [32]byte{}
			if v.Type == value.Float {
				text = v.AppendText(memory[:0])
			}
			nearest, ok := value.Rounded(text, scale)
			if !ok && v.Type == value.Float {
				return f.fail(ErrOverflow)
			}
			return nearest
		}
		if v.Type != value.Int && v.Type != value.Decimal {
			return value.Value{}
		}
		v = rounded(f, &v, scale, nil, true, 0)
		if !v.IsNull() {
			v.Type = value.Decimal
		}
		return v
	}, nil
}
