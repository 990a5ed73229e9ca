package aggregate

// lag is the value of a field n values before the latest.
type lag struct{}

func (lag) Spec() Spec {
	return Spec{
		Name: "lag", Title: "value of a field `n` values before the latest",
		Note:  "Null if there are fewer values. `n=0` is the same as `last`.",
		Types: allTypes, Exact: true,
		Parameters: []Parameter{{Name: "n", Type: Whole, Default: "1", Max: 999}},
		Example:    "LAG(7d, transaction, amount, user, n=2)",
	}
}

func (lag) Fold(c Call, _ int64, events []Sample) Result {
	v, ok := fromLast(events, c.N)
	return Result{Value: v, Found: ok}
}

// Settled implements Latest.
func (lag) Settled(c Call, events []Sample) bool { return hasValues(events, c.N+1) }
