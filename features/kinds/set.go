package kinds

import "slices"

// set lists the different values of a field in their order.
type set struct{}

func (set) Spec() Spec {
	return Spec{
		Name: "set", Title: "the different values of a field, in their order",
		Note:  "Strings are ordered byte by byte. `max` events are looked at.",
		Types: anyType, FieldLast: true, Exact: true, Shape: List,
		Example: "SET(30d, transaction, device, user)",
	}
}

func (set) Fold(_ Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	slices.SortFunc(values, Compare)
	return listOf(slices.CompactFunc(values, func(a, b Value) bool { return Compare(a, b) == 0 }))
}
