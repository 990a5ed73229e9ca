package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// count is the number of events.
type count struct{}

func (count) Spec() Spec {
	return Spec{
		Name: "count", Title: "number of events", Exact: true, MultiHop: true, Neutral: integer(0),
		Result: value.Int, Example: "COUNT(7d, transaction, device)",
	}
}

func (count) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }

func (count) fromTotals() {}

func (count) Merge(_ Call, _ int64, s []state.WindowState) Result {
	return Result{Value: integer(total(s[0].Buckets)), Found: len(s[0].Buckets) > 0}
}

func (count) Fold(_ Call, _ int64, events []Sample) Result {
	return Result{Value: integer(int64(len(events))), Found: len(events) > 0}
}

// total adds up the buckets of a series of integers.
func total(buckets []state.Bucket) (n int64) {
	for _, b := range buckets {
		n += b.Value.Num
	}
	return n
}

func (count) Running(Call) Running { return new(runningCount) }

type runningCount struct{ events int64 }

func (r *runningCount) Add(*Sample)    { r.events++ }
func (r *runningCount) Remove(*Sample) { r.events-- }

func (r *runningCount) Result(to *value.Value) (found, capped bool) {
	*to = integer(r.events)
	return r.events > 0, false
}
