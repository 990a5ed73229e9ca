package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// timeSinceFirst and timeSinceLast are the age of the earliest and the latest event.
type (
	timeSinceFirst struct{}
	timeSinceLast  struct{}
)

func (timeSinceFirst) Spec() Spec {
	return Spec{
		Name: "time_since_first", Title: "time since the earliest event, in milliseconds", Note: sinceNote, Exact: true,
		Result: value.Int, Example: "TIME_SINCE_FIRST(lifetime, transaction, user)",
	}
}

func (timeSinceLast) Spec() Spec {
	return Spec{
		Name: "time_since_last", Title: "time since the latest event, in milliseconds", Note: sinceNote, Exact: true,
		Result: value.Int, Example: "TIME_SINCE_LAST(30d, transaction, user)",
	}
}

const sinceNote = "Measured up to the moment asked for, minus the window's `delay`. It is 0 if the event is after that moment, as it may be within the moment's tile."

func (timeSinceFirst) Measures(Call) []state.Measure { return []state.Measure{state.Earliest} }
func (timeSinceLast) Measures(Call) []state.Measure  { return []state.Measure{state.Latest} }

func (timeSinceFirst) fromTotals() {}
func (timeSinceLast) fromTotals()  {}

func (timeSinceFirst) Merge(_ Call, at int64, s []state.WindowState) Result {
	return since(at, extreme(s[0].Buckets, -1))
}

func (timeSinceLast) Merge(_ Call, at int64, s []state.WindowState) Result {
	return since(at, extreme(s[0].Buckets, +1))
}

func (timeSinceFirst) Fold(_ Call, at int64, events []Sample) Result {
	if len(events) == 0 {
		return Result{}
	}
	return since(at, Result{Value: integer(events[0].Time), Found: true})
}

func (timeSinceLast) Fold(_ Call, at int64, events []Sample) Result {
	if len(events) == 0 {
		return Result{}
	}
	return since(at, Result{Value: integer(events[len(events)-1].Time), Found: true})
}

// Settled implements Latest.
func (timeSinceLast) Settled(_ Call, events []Sample) bool { return len(events) > 0 }

// since returns how long a time lies before a moment, if there is one.
func since(at int64, time Result) Result {
	if time.Found {
		time.Value = integer(max(0, at-time.Value.Num))
	}
	return time
}
