package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// countDistinctLastSeen counts different values from the time at which each
// was last met. The window's edge is exact, and one entry serves a value for
// any number of events; but the newest Max values only are kept, and of a
// moment that has passed it is no longer known whether a value met since had
// been met before: such values are not counted and stated as Uncertain.
type countDistinctLastSeen struct{}

func (countDistinctLastSeen) Spec() Spec {
	return Spec{
		Name: "count_distinct", Method: "last_seen", Title: "number of different values of a field, the newest kept",
		Types: anyType, FieldLast: true, Exact: true, Neutral: value.Value{Type: value.Int}, DefaultMax: 1000,
		Note:   "The newest `max` values are kept, 1000 by default.",
		Result: value.Int, Example: "COUNT_DISTINCT(30d, transaction, device, user, method=last_seen)",
	}
}

func (countDistinctLastSeen) Measures(Call) []state.Measure { return []state.Measure{state.LastTimes} }

func (countDistinctLastSeen) Merge(_ Call, _ int64, s []state.WindowState) Result {
	return Result{
		Value: value.Value{Type: value.Int, Num: s[0].Count}, Found: s[0].Count+s[0].After > 0,
		Uncertain: s[0].After, Capped: s[0].Capped,
	}
}

func (countDistinctLastSeen) Fold(_ Call, _ int64, events []Sample) Result {
	return distinctModel(events)
}
