package kinds

// first is the earliest value of a field.
type first struct{}

func (first) Spec() Spec {
	return Spec{
		Name: "first", Title: "earliest value of a field", Types: everyType, Exact: true,
		Example: "FIRST(30d, transaction, merchant, user)",
	}
}

func (first) Fold(_ Call, _ int64, events []Sample) Result {
	for _, e := range events {
		if !e.Value.IsNull() {
			return Result{Value: e.Value, Found: true}
		}
	}
	return Result{}
}
