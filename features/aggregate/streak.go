package aggregate

import (
	"slices"

	"github.com/weir-stream/weir/value"
)

// streak is the number of consecutive latest events that satisfy a condition.
type streak struct{}

func (streak) Spec() Spec {
	return Spec{
		Name: "streak", Title: "number of consecutive latest events that satisfy a condition",
		Note:  "An event that does not satisfy the condition resets it to 0. So does one for which the condition is unknown, because of a null.",
		Exact: true, Neutral: integer(0), Parameters: []Parameter{condition},
		Result: value.Int, Example: `STREAK(1d, transaction, user, condition='status == "declined"')`,
	}
}

func (streak) Fold(_ Call, _ int64, events []Sample) Result {
	n := int64(0)
	for _, e := range slices.Backward(events) {
		if !e.Holds {
			break
		}
		n++
	}
	return Result{Value: integer(n), Found: len(events) > 0}
}

// Settled implements Latest.
func (streak) Settled(_ Call, events []Sample) bool {
	return slices.ContainsFunc(events, func(e Sample) bool { return !e.Holds })
}
