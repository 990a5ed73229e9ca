package aggregate

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// A sum does not depend on the order of its terms, however large it gets.
func TestSumsBeyond64Bits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Call{Type: value.Decimal, Scale: 18}
		var events []Sample
		total := new(big.Int)
		for _, num := range rapid.SliceOfN(rapid.Int64(), 1, 20).Draw(t, "values") {
			events = append(events, Sample{Value: value.Value{Type: value.Decimal, Scale: 18, Num: num}})
			total.Add(total, big.NewInt(num))
		}
		want, _ := value.OfBig(value.Decimal, 18, total)
		for range 3 {
			if r := (sum{}).Fold(c, 0, events); !r.Found || r.Capped || value.Compare(r.Value, want) != 0 {
				t.Fatalf("the sum is %s, %+v; want %s", r.Value.AppendText(nil), r, want.AppendText(nil))
			}
			events = rapid.Permutation(events).Draw(t, "order")
		}
		average, _ := new(big.Rat).SetFrac(total, new(big.Int).Mul(big.NewInt(1e18), big.NewInt(int64(len(events))))).Float64()
		if r := (avg{}).Fold(c, 0, events); r.Value.Flt != average || r.Capped {
			t.Fatalf("the average is %+v, want %v", r, average)
		}
	})
}

// Sums of large values that need more than 64 bits.
func TestSumsOfLargeValues(t *testing.T) {
	events := func(t value.Type, scale uint8, nums ...int64) (list []Sample) {
		for _, num := range nums {
			list = append(list, Sample{Value: value.Value{Type: t, Scale: scale, Num: num}})
		}
		return list
	}
	for _, c := range []struct {
		function Function
		events   []Sample
		want     string
	}{
		{sum{}, events(value.Int, 0, 9e18, 9e18, -9e18), "9000000000000000000"},
		{sum{}, events(value.Int, 0, 9e18, 9e18), "18000000000000000000"},
		{sum{}, events(value.Int, 0, math.MinInt64, math.MinInt64), "-18446744073709551616"},
		{sum{}, events(value.Decimal, 18, 9.2e18, 9.2e18, 1), "18.400000000000000001"},
		{sum{}, events(value.Decimal, 2, -9e18, -9e18), "-180000000000000000"},
		{avg{}, events(value.Int, 0, math.MaxInt64, math.MaxInt64), "9.223372036854776e+18"},
		{avg{}, events(value.Decimal, 18, 9e18, 5e18), "7"},
		{avg{}, events(value.Decimal, 2, 10, 20, 30), "0.2"},
		{avg{}, events(value.Decimal, 2, -10, -20, -30), "-0.2"},
		{avg{}, events(value.Int, 0, 1<<53, 1<<53, 3), "6.004799503160662e+15"},
	} {
		call := Call{Type: c.events[0].Value.Type, Scale: c.events[0].Value.Scale}
		if r := c.function.Fold(call, 0, c.events); string(r.Value.AppendText(nil)) != c.want || r.Capped {
			t.Errorf("%s is %s, capped %v; want %s", c.function.Spec().Name, r.Value.AppendText(nil), r.Capped, c.want)
		}
	}
}

// Float sums out of range saturate, and the answer says so.
func TestFloatSumsSaturate(t *testing.T) {
	float := func(f float64) Sample { return Sample{Value: value.Value{Type: value.Float, Flt: f}} }
	r := sum{}.Fold(Call{Type: value.Float}, 0, []Sample{float(math.MaxFloat64), float(math.MaxFloat64), float(-1e308)})
	if !r.Capped || r.Value.Flt != math.MaxFloat64 {
		t.Errorf("the sum of floats that overflow is %+v, want the largest float and capped", r)
	}
}
