package kinds

import "slices"

// set lists the different values of a field in their order.
type set struct{}

func (set) Spec() Spec {
	return Spec{
		Name: "set", Title: "the different values of a field, in their order",
		Note:  orderNote + " " + membersNote,
		Types: anyType, FieldLast: true, Exact: true, Through: true, Shape: List, Members: MembersMay,
		Example: "SET(30d, transaction, device, user)",
	}
}

// membersNote is about kinds that may be asked about members.
const membersNote = "A question that names `members` is told of each whether it is there."

func (set) Measures(Call) []Measure { return []Measure{Distinct} }

func (set) Merge(c Call, _ int64, s []Slice) Result {
	if c.Members != nil {
		return c.askedAmong(s[0].Members)
	}
	values := make([]Value, 0, len(s[0].Members))
	for _, text := range s[0].Members {
		values = append(values, ParseText(c.Type, c.Scale, text))
	}
	slices.SortFunc(values, Compare)
	return listOf(values)
}

func (set) Fold(c Call, _ int64, events []Sample) Result {
	if c.Members != nil {
		return c.askedOf(events)
	}
	values := fieldOf(events)
	slices.SortFunc(values, Compare)
	return listOf(slices.CompactFunc(values, func(a, b Value) bool { return Compare(a, b) == 0 }))
}
