package aggregate

import (
	"math"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// entropy is Shannon's entropy of the values of a field ("A Mathematical Theory of Communication",
// 1948), in bits.
type entropy struct{}

func (entropy) Spec() Spec {
	return Spec{
		Name: "entropy", Title: "Shannon entropy of the values of a field, in bits",
		Note:  "It is 0 if all values are the same, and log2(n) for n equally frequent values. More than `max` values are counted as by [mode](#mode).",
		Types: distinctTypes, Exact: true, DefaultMax: defaultValues,
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
	total := 0.0
	for _, i := range f.items {
		total += float64(i.Count)
	}
	sum := 0.0 // of shares times their logarithms: exactly 0 if one value has all events
	for _, i := range f.items {
		n := float64(i.Count)
		sum += n / total * math.Log2(total/n)
	}
	return Result{Value: float(sum), Found: true, Capped: f.capped}
}
