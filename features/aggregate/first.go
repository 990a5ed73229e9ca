package aggregate

import "github.com/weir-stream/weir/state"

// first is the earliest value of a field.
type first struct{}

func (first) Spec() Spec {
	return Spec{
		Name: "first", Title: "earliest value of a field", Types: allTypes, Exact: true,
		Example: "FIRST(30d, transaction, merchant, user)",
	}
}

func (first) Measures(Call) []state.Measure { return []state.Measure{state.FirstValue} }

func (first) Merge(_ Call, _ int64, s []state.WindowState) Result {
	if len(s[0].Buckets) == 0 {
		return Result{}
	}
	return Result{Value: s[0].Buckets[0].Value, Found: true}
}

func (first) Fold(_ Call, _ int64, events []Sample) Result {
	for _, e := range events {
		if !e.Value.IsNull() {
			return Result{Value: e.Value, Found: true}
		}
	}
	return Result{}
}
