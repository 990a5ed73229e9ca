package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// ratio is the share of events that satisfy a condition.
type ratio struct{}

func (ratio) Spec() Spec {
	return Spec{
		Name: "ratio", Title: "share of the events that satisfy a condition, from 0 to 1",
		Note:  "An event for which the condition is unknown, because of a null, does not satisfy it.",
		Exact: true, Parameters: []Parameter{condition},
		Result: value.Float, Example: "RATIO(1d, transaction, user, condition='amount > 100')",
	}
}

func (ratio) Measures(Call) []state.Measure {
	return []state.Measure{state.CountHolds, state.CountEvents}
}

func (ratio) fromTotals() {}

func (ratio) Merge(_ Call, _ int64, s []state.WindowState) Result {
	return share(total(s[0].Buckets), total(s[1].Buckets))
}

func (ratio) Fold(_ Call, _ int64, events []Sample) Result {
	n := int64(0)
	for _, e := range events {
		if e.Holds {
			n++
		}
	}
	return share(n, int64(len(events)))
}

// share is n/all.
func share(n, all int64) Result {
	if all == 0 {
		return Result{}
	}
	return Result{Value: float(float64(n) / float64(all)), Found: true}
}

func (ratio) Running(Call) Running { return new(runningRatio) }

type runningRatio struct{ holds, events int64 }

func (r *runningRatio) Add(e *Sample)    { r.take(e, 1) }
func (r *runningRatio) Remove(e *Sample) { r.take(e, -1) }

func (r *runningRatio) take(e *Sample, n int64) {
	if r.events += n; e.Holds {
		r.holds += n
	}
}

func (r *runningRatio) Result(to *value.Value) (found, capped bool) {
	s := share(r.holds, r.events)
	*to = s.Value
	return s.Found, false
}
