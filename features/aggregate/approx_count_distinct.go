package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// approxCountDistinct estimates the number of distinct values with HyperLogLogs of 2^14 registers (Flajolet et al.,
// "HyperLogLog", 2007; in the variant of Redis), united over the window's tiles. countDistinctHLL is the same, as a
// method of count_distinct.
type (
	approxCountDistinct struct{}
	countDistinctHLL    struct{ approxCountDistinct }
)

func (approxCountDistinct) Spec() Spec {
	return Spec{
		Name: "approx_count_distinct", Title: "estimated number of distinct values of a field",
		Types: distinctTypes, FieldLast: true, StandardError: 0.0081, Neutral: integer(0),
		Result: value.Int, Example: "APPROX_COUNT_DISTINCT(30d, transaction, device, user)",
	}
}

func (f countDistinctHLL) Spec() Spec {
	s := f.approxCountDistinct.Spec()
	s.Name, s.Method = "count_distinct", "hll"
	s.Example = "COUNT_DISTINCT(30d, transaction, device, user, method=hll)"
	return s
}

func (approxCountDistinct) Measures(Call) []state.Measure { return []state.Measure{state.Approx} }

func (approxCountDistinct) Merge(_ Call, _ int64, s []state.WindowState) Result {
	return Result{Value: integer(s[0].Count), Found: s[0].Count > 0, StandardError: s[0].StandardError}
}

func (approxCountDistinct) Fold(_ Call, _ int64, events []Sample) Result {
	return countDistinctValues(events)
}
