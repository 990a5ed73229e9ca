package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// countDistinctLastSeen counts distinct values by the time of each value's last event. The window's edge is exact, and
// a value takes one entry for any number of events. But only the newest Max values are kept. At a past moment, values
// with a later event may or may not have had one in the window: they are not counted, and stated as Uncertain.
type countDistinctLastSeen struct{}

func (countDistinctLastSeen) Spec() Spec {
	return Spec{
		Name: "count_distinct", Method: "last_seen", Title: "number of distinct values of a field; the newest are kept",
		Types: distinctTypes, FieldLast: true, Exact: true, Neutral: integer(0), DefaultMax: 1000,
		Note:   "The `max` values that were seen last are kept, 1000 by default. For a moment in the past, values that were seen again after it are not counted: the answer's status is `LATER_EVENTS`, and its `uncertain` says how many these are. If it is all `max`, the value is null.",
		Result: value.Int, Example: "COUNT_DISTINCT(30d, transaction, device, user, method=last_seen)",
	}
}

func (countDistinctLastSeen) Measures(Call) []state.Measure { return []state.Measure{state.LastTimes} }

// Merge counts the newest Max values only. The series may keep more for another feature, but perhaps only since a
// change of definitions, so it may lack some of them.
func (countDistinctLastSeen) Merge(c Call, _ int64, s []state.WindowState) Result {
	most := int64(c.Max)
	after := min(s[0].After, most)
	count := min(s[0].Count, most-after)
	return Result{
		Value: integer(count), Found: count > 0 || 0 < after && after < most,
		// If one of the kept values is older than the window, no value in the window is missing.
		Uncertain: after, Capped: count+after == most,
	}
}

func (countDistinctLastSeen) Fold(_ Call, _ int64, events []Sample) Result {
	return countDistinctValues(events)
}
