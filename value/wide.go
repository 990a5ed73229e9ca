package value

import (
	"math"
	"math/big"
)

// Sums of ints or decimals have 128 bits, so one that exceeds 64 bits and comes back is exact. The
// number is Num + Carry·2^64 modulo 2^128, signed: anything that fits into 64 bits has no carry,
// and only sums and values computed from them have one.

// The bounds of sums. A sum that has reached one stays there, whatever is added, so that its answer
// can say so; it takes more than 2^64 events.
var (
	greatestSum = sumOf(math.MaxInt64, math.MaxUint64)
	leastSum    = sumOf(math.MinInt64, 0)
)

// words returns the number's words, most significant first.
func (v Value) words() (high int64, low uint64) { return v.Carry + v.Num>>63, uint64(v.Num) }

// sumOf returns the number, without a type, of two words.
func sumOf(high int64, low uint64) Value {
	return Value{Num: int64(low), Carry: high - int64(low)>>63}
}

// Wide reports whether an Int or Decimal does not fit into 64 bits.
func (v Value) Wide() bool { return v.Carry != 0 }

// addSums returns the sum of two ints, or of two decimals of one scale.
func addSums(a, b Value) Value {
	if a.Carry|b.Carry == 0 {
		sum := a.Num + b.Num
		if (a.Num^sum)&(b.Num^sum) < 0 { // its sign differs from both
			a.Carry = 1 | b.Num>>63
		}
		a.Num = sum
		return a
	}
	if a.Saturated() || b.Saturated() {
		if !a.Saturated() || b.is(greatestSum) {
			a.Num, a.Carry = b.Num, b.Carry
		}
		return a
	}
	aHigh, aLow := a.words()
	bHigh, bLow := b.words()
	low, high := aLow+bLow, aHigh+bHigh
	if low < aLow {
		high++
	}
	sum := sumOf(high, low)
	if (aHigh^high)&(bHigh^high) < 0 {
		if sum = greatestSum; aHigh < 0 {
			sum = leastSum
		}
	}
	a.Num, a.Carry = sum.Num, sum.Carry
	return a
}

// is reports whether two numbers are equal.
func (v Value) is(w Value) bool { return v.Num == w.Num && v.Carry == w.Carry }

// Big returns the Num of an Int or Decimal, with its carry.
func (v Value) Big() *big.Int {
	high, low := v.words()
	n := big.NewInt(high)
	return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(low))
}

// OfBig returns an Int n, or a Decimal n/10^scale; ok is false if that does not fit into 128 bits.
func OfBig(t Type, scale uint8, n *big.Int) (v Value, ok bool) {
	if n.BitLen() > 127 {
		return Value{}, false
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	v = sumOf(new(big.Int).Rsh(n, 64).Int64(), low)
	v.Type, v.Scale = t, scale
	return v, true
}

// appendWide is AppendText for values that do not fit into 64 bits.
func (v Value) appendWide(dst []byte) []byte {
	n := v.Big()
	if v.Type != Decimal {
		return n.Append(dst, 10)
	}
	if n.Sign() < 0 {
		dst = append(dst, '-')
	}
	return appendPoint(dst, n.Abs(n).Append(nil, 10), v.Scale)
}

// wideFloat returns the float nearest to an Int or Decimal that does not fit into 64 bits.
func (v Value) wideFloat() float64 {
	f, _ := new(big.Rat).SetFrac(v.Big(), big.NewInt(pow10[v.Scale])).Float64()
	return f
}
