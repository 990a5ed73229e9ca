package aggregate

import (
	"math"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// entropy is Shannon's entropy of the values of a field ("A Mathematical Theory
// of Communication", 1948): how many bits it takes on average to say which it
// is.
type entropy struct{}

func (entropy) Spec() Spec {
	return Spec{
		Name: "entropy", Title: "Shannon's entropy of a field's values, in bits",
		Note:  "0 where all are the same; log2(n) for n values that are equally frequent. " + valuesNote,
		Types: anyType, Exact: true, DefaultMax: defaultValues,
		Result: value.Float, Example: "ENTROPY(30d, transaction, merchant, user)",
	}
}

func (entropy) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }

func (entropy) Keys(Call) Keys { return Keys{} }

func (entropy) Merge(c Call, _ int64, s []state.WindowState) Result {
	return bits(valueCounts(c, s[0]))
}

func (entropy) Fold(c Call, _ int64, events []Sample) Result { return bits(frequencies(c, events)) }

func bits(f frequency) Result {
	if f.items == nil {
		return Result{}
	}
	total, weighted := 0.0, 0.0
	for _, i := range f.items {
		n := float64(i.Count)
		total += n
		weighted += n * math.Log2(n)
	}
	return Result{Value: float(math.Log2(total) - weighted/total), Found: true, Capped: f.capped}
}
