package aggregate

import (
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// sum is the sum of a numeric field; nulls are skipped.
type sum struct{}

var numeric = []value.Type{value.Int, value.Float, value.Decimal}

func (sum) Spec() Spec {
	return Spec{
		Name: "sum", Title: "sum of a field",
		Note:  "The sum of ints and decimals is exact in 128 bits: one that exceeds the 64 bits of a field is written with all its digits. The sum of floats in an exact window is the float nearest to the true sum, in whatever order they arrive. In tiles, a sum beyond the greatest float stays there, `capped`, until its tile leaves the window.",
		Types: numeric, Exact: true, MultiHop: true, Neutral: integer(0),
		Example: "SUM(1d, transaction, amount, user)",
	}
}

func (sum) Measures(Call) []state.Measure { return []state.Measure{state.Sum} }

func (sum) fromTotals() {}

func (sum) Merge(c Call, _ int64, s []state.WindowState) Result {
	return summed(c, s[0].Buckets)
}

func (sum) Fold(c Call, _ int64, events []Sample) Result {
	return summed(c, bucketsOf(events))
}

// summed marks a sum that leaves 128 bits, or the range of floats, as capped.
func summed(c Call, buckets []state.Bucket) Result {
	sum := add(c, buckets)
	return Result{Value: sum.Finite(), Found: len(buckets) > 0, Capped: sum.Saturated()}
}

// add adds the buckets of the field's type. A sum of floats is rounded once, so it does not depend
// on their order.
func add(c Call, buckets []state.Bucket) value.Value {
	v := value.Value{Type: c.Type, Scale: c.Scale}
	if c.Type == value.Float && !slices.ContainsFunc(buckets, func(b state.Bucket) bool { return b.Value.Saturated() }) {
		var floats value.FloatSum
		for i := range buckets {
			floats.Add(buckets[i].Value.Flt)
		}
		v.Flt = floats.Float()
		return v
	}
	for _, bucket := range buckets {
		v = value.Add(v, bucket.Value)
	}
	return v
}

// bucketsOf makes a bucket of each non-null value of the events.
func bucketsOf(events []Sample) []state.Bucket {
	buckets := make([]state.Bucket, 0, len(events))
	for _, e := range events {
		if !e.Value.IsNull() {
			buckets = append(buckets, state.Bucket{Tile: e.Time, Value: e.Value})
		}
	}
	return buckets
}

func (sum) Running(c Call) Running {
	if c.Type == value.Float {
		return &runningFloats{scale: c.Scale}
	}
	return &runningInts{typ: c.Type, scale: c.Scale}
}

// runningFloats is the sum and the number of the floats in a window.
type runningFloats struct {
	sum    value.FloatSum
	values int64
	scale  uint8
}

func (r *runningFloats) Add(e *Sample) {
	if !e.Value.IsNull() {
		r.sum.Add(e.Value.Flt)
		r.values++
	}
}

func (r *runningFloats) Remove(e *Sample) {
	if !e.Value.IsNull() {
		r.sum.Sub(e.Value.Flt)
		r.values--
	}
}

func (r *runningFloats) Result(to *value.Value) (found, capped bool) {
	sum := r.sum.Float()
	*to = value.Value{Type: value.Float, Scale: r.scale, Flt: max(-math.MaxFloat64, min(math.MaxFloat64, sum))}
	return r.values > 0, math.IsInf(sum, 0)
}

// runningInts is the sum and the number of the ints, or decimals, in a window.
type runningInts struct {
	typ    value.Type
	scale  uint8
	sum    value.IntSum
	values int64
}

func (r *runningInts) Add(e *Sample) {
	if !e.Value.IsNull() {
		r.sum.Add(e.Value.Num)
		r.values++
	}
}

func (r *runningInts) Remove(e *Sample) {
	if !e.Value.IsNull() {
		r.sum.Sub(e.Value.Num)
		r.values--
	}
}

func (r *runningInts) Result(to *value.Value) (found, capped bool) {
	*to = value.Value{Type: r.typ, Scale: r.scale}
	r.sum.Set(to)
	return r.values > 0, to.Saturated()
}
