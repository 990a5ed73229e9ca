package kinds

// timeSinceFirst and timeSinceLast are how long ago events were.
type (
	timeSinceFirst struct{}
	timeSinceLast  struct{}
)

func (timeSinceFirst) Spec() Spec {
	return Spec{
		Name: "time_since_first", Title: "time since the earliest event, in milliseconds", Note: sinceNote, Exact: true,
		Result: Int, Example: "TIME_SINCE_FIRST(lifetime, transaction, user)",
	}
}

func (timeSinceLast) Spec() Spec {
	return Spec{
		Name: "time_since_last", Title: "time since the latest event, in milliseconds", Note: sinceNote, Exact: true,
		Result: Int, Example: "TIME_SINCE_LAST(30d, transaction, user)",
	}
}

const sinceNote = "Up to the moment asked for, less the window's `delay`."

func (timeSinceFirst) Fold(_ Call, at int64, events []Sample) Result {
	if len(events) == 0 {
		return Result{}
	}
	return Result{Value: integer(at - events[0].Time), Found: true}
}

func (timeSinceLast) Fold(_ Call, at int64, events []Sample) Result {
	if len(events) == 0 {
		return Result{}
	}
	return Result{Value: integer(at - events[len(events)-1].Time), Found: true}
}
