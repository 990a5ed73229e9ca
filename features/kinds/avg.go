package kinds

// avg is the sum of a numeric field over the number of its values.
type avg struct{}

func (avg) Spec() Spec {
	return Spec{
		Name: "avg", Title: "average of a field", Types: numeric, Exact: true,
		Result: Float, Example: "AVG(1d, transaction, amount, user)",
	}
}

func (avg) Measures(Call) []Measure { return []Measure{Sum, CountValues} }

func (avg) Merge(c Call, _ int64, s []Slice) Result {
	return average(c, s[0].Cells, total(s[1].Cells))
}

func (avg) Fold(c Call, _ int64, events []Sample) Result {
	cells := valuesOf(events)
	return average(c, cells, int64(len(cells)))
}

func average(c Call, cells []Cell, n int64) Result {
	if n == 0 {
		return Result{}
	}
	sum := add(c, cells)
	return Result{Value: Value{Type: Float, Flt: sum.Finite().Float64() / float64(n)}, Found: true, Capped: sum.Saturated()}
}
