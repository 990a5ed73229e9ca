package kinds

// anyType are the types whose values can be told apart by their text.
var anyType = []Type{String, Int, Float, Decimal, Bool, Timestamp}

// countDistinct is the number of different values of a field, counted from the
// values themselves with the tiles in which each was met: exact for every
// moment that is kept.
type countDistinct struct{}

func (countDistinct) Spec() Spec {
	return Spec{
		Name: "count_distinct", Method: "set", Title: "number of different values of a field", Note: membersNote,
		Types: anyType, FieldLast: true, Exact: true, Through: true, Neutral: Value{Type: Int}, Members: MembersMay,
		Result: Int, Example: "COUNT_DISTINCT(30d, transaction, device, user)",
	}
}

func (countDistinct) Measures(Call) []Measure { return []Measure{Distinct} }

func (countDistinct) Merge(c Call, _ int64, s []Slice) Result {
	if c.Members != nil {
		return c.askedAmong(s[0].Members)
	}
	n := len(s[0].Members)
	return Result{Value: Value{Type: Int, Num: int64(n)}, Found: n > 0}
}

func (countDistinct) Fold(c Call, _ int64, events []Sample) Result {
	if c.Members != nil {
		return c.askedOf(events)
	}
	return distinctModel(events)
}

// distinctModel counts the different values of the events.
func distinctModel(events []Sample) Result {
	values := map[string]bool{}
	for _, c := range valuesOf(events) {
		values[string(c.Value.AppendText(nil))] = true
	}
	return Result{Value: Value{Type: Int, Num: int64(len(values))}, Found: len(values) > 0}
}
