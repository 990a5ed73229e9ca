package aggregate

import "slices"

// lastK lists the latest values of a field, latest first.
type lastK struct{}

func (lastK) Spec() Spec {
	return Spec{
		Name: "last_k", Title: "the `k` latest values of a field, the latest first",
		Types: allTypes, Exact: true, Parameters: []Parameter{kParameter}, Shape: List,
		Example: "LAST_K(7d, transaction, merchant, user, k=5)",
	}
}

func (lastK) Fold(c Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	values = values[max(0, len(values)-c.N):]
	slices.Reverse(values)
	return listOf(values)
}

// Settled implements Latest.
func (lastK) Settled(c Call, events []Sample) bool { return hasValues(events, c.N) }
