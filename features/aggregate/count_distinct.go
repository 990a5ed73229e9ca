package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// distinctTypes are the types whose values are told apart by their text.
var distinctTypes = []value.Type{value.String, value.Int, value.Float, value.Decimal, value.Bool, value.Timestamp}

// countDistinct counts the distinct values of a field. The state keeps the values, each with its tiles, so the count is
// exact at every moment that is kept. A tile with more than Max values keeps a sample, and the number is estimated.
type countDistinct struct{}

func (countDistinct) Spec() Spec {
	return Spec{
		Name: "count_distinct", Method: "set", Title: "number of distinct values of a field", Note: sampleNote + " If a tile of the window had more, the number is an estimate: `exact` is false, and the answer states the `standard_error`. " + membersNote,
		Types: distinctTypes, FieldLast: true, Exact: true, MultiHop: true, Neutral: integer(0), Members: MembersOptional, DefaultMax: defaultValues,
		Result: value.Int, Example: "COUNT_DISTINCT(30d, transaction, device, user)",
	}
}

func (countDistinct) Measures(Call) []state.Measure { return []state.Measure{state.Distinct} }

func (countDistinct) Merge(c Call, _ int64, s []state.WindowState) Result {
	if c.Members != nil {
		return c.askedOfSample(&s[0])
	}
	n, relative := s[0].EstimateDistinct()
	return Result{Value: integer(n), Found: n > 0, StandardError: relative}
}

func (countDistinct) Fold(c Call, _ int64, events []Sample) Result {
	if c.Members != nil {
		return c.askedOf(events)
	}
	return countDistinctValues(events)
}

// sampleNote applies to functions that keep values.
const sampleNote = "Each tile keeps `max` values, 1000 by default, and no more bytes than `weir explain` says."

// countDistinctValues counts the distinct values of the events.
func countDistinctValues(events []Sample) Result {
	values := map[string]bool{}
	for _, v := range fieldOf(events) {
		values[string(v.AppendText(nil))] = true
	}
	return Result{Value: integer(int64(len(values))), Found: len(values) > 0}
}

func (countDistinct) Running(Call) Running { return &runningDistinct{events: map[string]int{}} }

// runningDistinct counts the events in the window for each value.
type runningDistinct struct {
	events map[string]int // by the value's text
	text   []byte
}

func (r *runningDistinct) Add(e *Sample) {
	if e.Value.IsNull() {
		return
	}
	r.text = e.Value.AppendText(r.text[:0])
	r.events[string(r.text)]++
}

func (r *runningDistinct) Remove(e *Sample) {
	if e.Value.IsNull() {
		return
	}
	r.text = e.Value.AppendText(r.text[:0])
	if n := r.events[string(r.text)]; n > 1 {
		r.events[string(r.text)] = n - 1
	} else {
		delete(r.events, string(r.text))
	}
}

func (r *runningDistinct) Result(to *value.Value) (found, capped bool) {
	*to = integer(int64(len(r.events)))
	return len(r.events) > 0, false
}
