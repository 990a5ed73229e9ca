package value

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// drawFloat draws a finite float: any, amounts of money, and extreme ones.
func drawFloat(t *rapid.T) float64 {
	return rapid.OneOf(
		rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
		rapid.Map(rapid.Int64Range(-1_000_000, 1_000_000), func(n int64) float64 { return float64(n) / 100 }),
		rapid.Map(rapid.Uint64(), func(n uint64) float64 { return math.Float64frombits(n &^ (1 << 62)) }),
		rapid.SampledFrom([]float64{
			0, 5e-324, -5e-324, math.MaxFloat64, -math.MaxFloat64, 0x1p-1022, 0x1p-1023, 1, -1, 1 << 53, 0x1p-53, -0x1p-54, 0x1p64, -0x1p64,
		}),
	).Draw(t, "float")
}

// A sum is the float nearest to the exact sum, in whatever order summands are added and subtracted.
func TestFloatSumsAreExact(t *testing.T) {
	const precision = 2300 // bits; as many as a sum can have
	rapid.Check(t, func(t *rapid.T) {
		var sum FloatSum
		var held []float64
		want := new(big.Float).SetPrec(precision)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(held) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				sum.Sub(held[i])
				want.Sub(want, big.NewFloat(held[i]))
				held[i] = held[len(held)-1]
				held = held[:len(held)-1]
			} else {
				f := drawFloat(t)
				sum.Add(f)
				want.Add(want, big.NewFloat(f))
				held = append(held, f)
			}
			if nearest, _ := want.Float64(); sum.Float() != nearest {
				t.Fatalf("the sum of %v is %v, want %v", held, sum.Float(), nearest)
			}
		}
	})
}

func BenchmarkFloatSum(b *testing.B) {
	var sum FloatSum
	for i := range b.N {
		f := float64(i%100_000) / 100
		sum.Add(f)
		sum.Sub(f - 0.01)
		if sum.Float() < 0 {
			b.Fatal("less than nothing")
		}
	}
}
