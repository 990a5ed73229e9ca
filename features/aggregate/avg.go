package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// avg is the sum of a numeric field over the number of its values.
type avg struct{}

func (avg) Spec() Spec {
	return Spec{
		Name: "avg", Title: "average of a field", Types: numeric, Exact: true,
		Result: value.Float, Example: "AVG(1d, transaction, amount, user)",
	}
}

func (avg) Measures(Call) []state.Measure { return []state.Measure{state.Sum, state.CountValues} }

func (avg) fromTotals() {}

func (avg) Merge(c Call, _ int64, s []state.WindowState) Result {
	return average(c, s[0].Buckets, total(s[1].Buckets))
}

func (avg) Fold(c Call, _ int64, events []Sample) Result {
	buckets := valuesOf(events)
	return average(c, buckets, int64(len(buckets)))
}

func average(c Call, buckets []state.Bucket, n int64) Result { return averageOf(add(c, buckets), n) }

// averageOf returns the average of n values with a sum.
func averageOf(sum value.Value, n int64) Result {
	if n == 0 {
		return Result{}
	}
	return Result{Value: value.Value{Type: value.Float, Flt: sum.Finite().Float64() / float64(n)}, Found: true, Capped: sum.Saturated()}
}

func (avg) Running(c Call) Running { return &runningAverage{newRunningSum(c)} }

type runningAverage struct{ runningSum }

func (r *runningAverage) Result(to *value.Value) (found, capped bool) {
	if r.values == 0 {
		*to = value.Value{}
		return false, false
	}
	sum, capped := r.float()
	*to = float(sum / float64(r.values))
	return true, capped
}
