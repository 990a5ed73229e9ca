package value

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// A sum of squares is exact, however it is put together from parts.
func TestSquareSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts [3]SquareSum
		want := new(big.Int)
		numbers := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64}))
		for _, n := range rapid.SliceOf(numbers).Draw(t, "numbers") {
			parts[rapid.IntRange(0, 2).Draw(t, "part")].Add(n)
			b := big.NewInt(n)
			want.Add(want, b.Mul(b, b))
		}
		var sum SquareSum
		for _, p := range parts {
			sum.AddSum(p)
		}
		if sum.Big().Cmp(want) != 0 {
			t.Fatalf("the sum is %v, want %v", sum.Big(), want)
		}
	})
}
