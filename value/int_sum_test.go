package value

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// A sum equals that of math/big, in whatever order summands are added and subtracted.
func TestIntSumsEqualBigInts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum IntSum
		want := new(big.Int)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			n := rapid.Int64().Draw(t, "n")
			if rapid.Bool().Draw(t, "back") {
				sum.Sub(n)
				want.Sub(want, big.NewInt(n))
			} else {
				sum.Add(n)
				want.Add(want, big.NewInt(n))
			}
			got := Value{Type: Int}
			sum.Set(&got)
			if got.Big().Cmp(want) != 0 {
				t.Fatalf("the sum is %s, want %s", got.AppendText(nil), want)
			}
		}
	})
}
