package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// idleSince is the time of the latest event.
type idleSince struct{}

func (idleSince) Spec() Spec {
	return Spec{
		Name: "idle_since", Title: "time of the latest event, since when nothing has happened", Exact: true,
		Result: value.Timestamp, Example: "IDLE_SINCE(30d, transaction, user)",
	}
}

func (idleSince) Measures(Call) []state.Measure { return []state.Measure{state.Latest} }

func (idleSince) fromTotals() {}

func (idleSince) Merge(_ Call, _ int64, s []state.WindowState) Result {
	return extreme(s[0].Buckets, +1)
}

func (idleSince) Fold(_ Call, _ int64, events []Sample) Result {
	if len(events) == 0 {
		return Result{}
	}
	return Result{Value: value.Value{Type: value.Timestamp, Num: events[len(events)-1].Time}, Found: true}
}

// Settled implements Latest.
func (idleSince) Settled(_ Call, events []Sample) bool { return len(events) > 0 }
