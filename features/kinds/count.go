package kinds

// count is the number of events.
type count struct{}

func (count) Spec() Spec {
	return Spec{
		Name: "count", Title: "number of events", Exact: true, Through: true, Neutral: Value{Type: Int},
		Result: Int, Example: "COUNT(7d, transaction, device)",
	}
}

func (count) Measures(Call) []Measure { return []Measure{CountEvents} }

func (count) Merge(_ Call, _ int64, s []Slice) Result {
	return Result{Value: Value{Type: Int, Num: total(s[0].Cells)}, Found: len(s[0].Cells) > 0}
}

func (count) Fold(_ Call, _ int64, events []Sample) Result {
	return Result{Value: Value{Type: Int, Num: int64(len(events))}, Found: len(events) > 0}
}

// total adds up the cells of a series of integers.
func total(cells []Cell) (n int64) {
	for _, c := range cells {
		n += c.Value.Num
	}
	return n
}
