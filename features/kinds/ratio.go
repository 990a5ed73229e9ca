package kinds

// ratio is the share of the events that satisfy a condition.
type ratio struct{}

func (ratio) Spec() Spec {
	return Spec{
		Name: "ratio", Title: "share of the events that satisfy a condition, from 0 to 1",
		Note:  "Events for which the condition is unknown, because of a null, do not satisfy it.",
		Exact: true, Parameters: []Parameter{condition},
		Result: Float, Example: "RATIO(1d, transaction, user, condition='amount > 100')",
	}
}

func (ratio) Fold(_ Call, _ int64, events []Sample) Result {
	if len(events) == 0 {
		return Result{}
	}
	n := 0
	for _, e := range events {
		if e.Holds {
			n++
		}
	}
	return Result{Value: float(float64(n) / float64(len(events))), Found: true}
}
