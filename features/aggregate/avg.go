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
	buckets := bucketsOf(events)
	return average(c, buckets, int64(len(buckets)))
}

// average returns the average of n values, of which the buckets hold the sum.
func average(c Call, buckets []state.Bucket, n int64) Result {
	if n == 0 {
		return Result{}
	}
	sum := add(c, buckets)
	r := Result{Value: sum.Finite(), Found: true, Capped: sum.Saturated()}
	averageTo(&r.Value, n)
	return r
}

func (avg) Running(c Call) Running {
	if c.Type == value.Float {
		return new(runningFloatAverage)
	}
	return &runningIntAverage{runningInts{typ: c.Type, scale: c.Scale}}
}

type runningFloatAverage struct{ runningFloats }

func (r *runningFloatAverage) Result(to *value.Value) (found, capped bool) {
	_, capped = r.runningFloats.Result(to)
	return averageTo(to, r.values), capped && r.values > 0
}

type runningIntAverage struct{ runningInts }

func (r *runningIntAverage) Result(to *value.Value) (found, capped bool) {
	_, capped = r.runningInts.Result(to)
	return averageTo(to, r.values), capped && r.values > 0
}

// averageTo replaces the sum of n values by their average, if there are any.
func averageTo(sum *value.Value, n int64) (found bool) {
	if n == 0 {
		*sum = value.Value{}
		return false
	}
	all := integer(n)
	*sum = float(value.Quotient(sum, &all))
	return true
}
