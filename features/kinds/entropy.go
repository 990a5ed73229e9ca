package kinds

import "math"

// entropy is Shannon's entropy of the values of a field ("A Mathematical Theory
// of Communication", 1948): how many bits it takes on average to say which it
// is.
type entropy struct{}

func (entropy) Spec() Spec {
	return Spec{
		Name: "entropy", Title: "Shannon's entropy of a field's values, in bits",
		Note:  "0 where all are the same; log2(n) for n values that are equally frequent.",
		Types: anyType, Exact: true,
		Result: Float, Example: "ENTROPY(30d, transaction, merchant, user)",
	}
}

func (entropy) Fold(_ Call, _ int64, events []Sample) Result {
	items := frequencies(events)
	if items == nil {
		return Result{}
	}
	total, weighted := 0.0, 0.0
	for _, i := range items {
		n := float64(i.Count)
		total += n
		weighted += n * math.Log2(n)
	}
	return Result{Value: float(math.Log2(total) - weighted/total), Found: true}
}
