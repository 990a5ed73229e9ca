package aggregate

// firstK lists the earliest values of a field, earliest first.
type firstK struct{}

func (firstK) Spec() Spec {
	return Spec{
		Name: "first_k", Title: "the `k` earliest values of a field, the earliest first",
		Types: allTypes, Exact: true, Parameters: []Parameter{kParameter}, Shape: List,
		Example: "FIRST_K(30d, transaction, merchant, user, k=3)",
	}
}

func (firstK) Fold(c Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	return listOf(values[:min(c.N, len(values))])
}
