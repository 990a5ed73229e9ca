package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// last is the latest value of a field.
type last struct{}

func (last) Spec() Spec {
	return Spec{
		Name: "last", Title: "latest value of a field", Types: allTypes, Exact: true,
		Example: "LAST(30d, transaction, merchant, user)",
	}
}

func (last) Measures(Call) []state.Measure { return []state.Measure{state.LastValue} }

func (last) Merge(_ Call, _ int64, s []state.WindowState) Result {
	n := len(s[0].Buckets)
	if n == 0 {
		return Result{}
	}
	return Result{Value: s[0].Buckets[n-1].Value, Found: true}
}

func (last) Fold(_ Call, _ int64, events []Sample) Result {
	v, ok := fromLast(events, 0)
	return Result{Value: v, Found: ok}
}

// fromLast returns the value of the field n values before the last one; ok reports whether there are any values.
func fromLast(events []Sample, n int) (v value.Value, ok bool) {
	values := fieldOf(events)
	if n < len(values) {
		v = values[len(values)-1-n]
	}
	return v, len(values) > 0
}

// Settled implements Latest.
func (last) Settled(_ Call, events []Sample) bool { return hasValues(events, 1) }
