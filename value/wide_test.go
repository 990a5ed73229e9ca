package value

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// drawNumber draws an int of 128 bits, often near the bounds of 64.
func drawNumber(t *rapid.T, name string) *big.Int {
	n := big.NewInt(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64})).Draw(t, name))
	n.Lsh(n, rapid.SampledFrom([]uint{0, 0, 1, 3, 62}).Draw(t, "shift of "+name))
	return n.Add(n, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "a bit more of "+name)))
}

func wideInt(t *rapid.T, n *big.Int) Value {
	v, ok := OfBig(Int, 0, n)
	if !ok || v.Big().Cmp(n) != 0 || v.Wide() == n.IsInt64() || !v.Wide() && v.Num != n.Int64() {
		t.Fatalf("%s became %+v, found %v", n, v, ok)
	}
	return v
}

// Numbers of 128 bits are added, ordered, written and rounded like those of math/big.
func TestWideNumbersEqualBigInts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNumber(t, "a"), drawNumber(t, "b")
		v, w := wideInt(t, a), wideInt(t, b)
		if sum := new(big.Int).Add(a, b); sum.BitLen() < 127 && !Add(v, w).is(wideInt(t, sum)) {
			got := Add(v, w)
			t.Fatalf("%s + %s is %s", a, b, got.AppendText(nil))
		}
		if got := Compare(v, w); got != a.Cmp(b) {
			t.Fatalf("comparing %s and %s gives %d", a, b, got)
		}
		if got := string(v.AppendText(nil)); got != a.String() {
			t.Fatalf("%s is written as %s", a, got)
		}
		if want, _ := new(big.Float).SetInt(a).Float64(); v.Float64() != want {
			t.Fatalf("%s as a float is %g, want %g", a, v.Float64(), want)
		}
		v.Type, v.Scale = Decimal, uint8(rapid.IntRange(0, 18).Draw(t, "scale"))
		unscaled := new(big.Rat).SetFrac(a, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil))
		if got, ok := new(big.Rat).SetString(string(v.AppendText(nil))); !ok || got.Cmp(unscaled) != 0 {
			t.Fatalf("%s at scale %d is written as %s", a, v.Scale, v.AppendText(nil))
		}
	})
}

// A quotient of ints and decimals is rounded once.
func TestQuotientsAreRoundedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (v Value, is *big.Rat) {
			v = Value{Type: Int, Num: rapid.Int64Range(-1000, 1000).Draw(t, name)}
			if rapid.Bool().Draw(t, name+" is large") {
				v = wideInt(t, drawNumber(t, name))
			}
			if rapid.Bool().Draw(t, name+" is a decimal") {
				v.Type, v.Scale = Decimal, uint8(rapid.IntRange(0, 18).Draw(t, "scale of "+name))
			}
			return v, new(big.Rat).SetFrac(v.Big(), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil))
		}
		a, x := draw("a")
		b, y := draw("b")
		if y.Sign() == 0 {
			return
		}
		if want, _ := x.Quo(x, y).Float64(); Quotient(&a, &b) != want {
			t.Fatalf("%s / %s is %v, want %v", a.AppendText(nil), b.AppendText(nil), Quotient(&a, &b), want)
		}
	})
}

// A sum that has left its range stays at its bound and says so, whatever is added.
func TestSumsSaturate(t *testing.T) {
	up, down, one := greatestSum, leastSum, Value{Type: Int, Num: 1}
	up.Type, down.Type = Int, Int
	most := sumOf(math.MaxInt64, math.MaxUint64-1)
	least := sumOf(math.MinInt64, 1)
	most.Type, least.Type = Int, Int
	minus := Value{Type: Int, Num: -5}
	float := func(f float64) Value { return Value{Type: Float, Flt: f} }
	for _, c := range []struct {
		a, b, want Value
	}{
		{most, Value{Type: Int, Num: 5}, up}, {most, most, up}, {least, minus, down}, {least, least, down},
		{up, minus, up}, {minus, up, up}, {down, one, down}, {one, down, down}, {up, down, up}, {down, up, up},
		{float(math.MaxFloat64), float(math.MaxFloat64), float(math.Inf(1))},
		{float(math.Inf(1)), float(-math.MaxFloat64), float(math.Inf(1))},
		{float(math.Inf(-1)), float(math.MaxFloat64), float(math.Inf(-1))},
		{float(math.Inf(-1)), float(math.Inf(1)), float(math.Inf(1))},
	} {
		if got := Add(c.a, c.b); got.Num != c.want.Num || got.Carry != c.want.Carry || got.Flt != c.want.Flt || !got.Saturated() {
			t.Errorf("%+v + %+v is %+v", c.a, c.b, got)
		}
	}
	if most.Saturated() || least.Saturated() || one.Saturated() {
		t.Error("a sum within the bounds is marked as saturated")
	}
}

// A decimal becomes the float nearest to it, also if it has more digits than a float holds: a float is then equal to the
// number that it is written as.
func TestDecimalsBecomeTheNearestFloat(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		n := big.NewInt(random.Int64() - random.Int64())
		n.Lsh(n, uint(random.IntN(2)*random.IntN(64))).Add(n, big.NewInt(random.Int64N(7)))
		v, ok := OfBig(Decimal, uint8(random.IntN(int(MaxScale)+1)), n)
		text := string(v.AppendText(nil))
		if want, err := strconv.ParseFloat(text, 64); !ok || err != nil || v.Float64() != want {
			t.Errorf("%s becomes %v, want %v, error %v", text, v.Float64(), want, err)
		}
	}
}
