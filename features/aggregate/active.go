package aggregate

import (
	"math"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// active counts the units of time that had events.
type active struct{}

func (active) Spec() Spec {
	return Spec{
		Name: "active", Title: "number of minutes, or other units of time, that have events",
		Note:  "Units are aligned to UTC and are the window's tiles, so choose one that divides the window. When answered from the log, as a lifetime always is, a unit at the window's edge counts if it holds an event of the window.",
		Exact: true, Neutral: integer(0), TilesAreUnits: true,
		Parameters: []Parameter{{Name: "unit", Type: Span, Default: "1m"}},
		Result:     value.Int, Example: "ACTIVE(7d, transaction, user, unit=1h)",
	}
}

func (active) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }

func (active) Merge(_ Call, _ int64, s []state.WindowState) Result {
	n := int64(len(s[0].Buckets))
	return Result{Value: integer(n), Found: n > 0}
}

func (active) Fold(c Call, _ int64, events []Sample) Result {
	n, latest := int64(0), int64(math.MinInt64)
	for _, e := range events {
		if unit := state.FloorDiv(e.Time, c.Duration); unit != latest {
			n, latest = n+1, unit
		}
	}
	return Result{Value: integer(n), Found: n > 0}
}
