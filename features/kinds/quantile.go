package kinds

import (
	"slices"
	"sort"
)

// quantile is the least value of a field that is not exceeded by a share p of
// its values: SQL's percentile_disc.
type quantile struct{}

func (quantile) Spec() Spec {
	return Spec{
		Name: "quantile", Title: "least value of a field such that a share `p` of its values is not greater",
		Note:  "It is one of the values, as SQL's percentile_disc: `p=0.5` is the median, the lower one of two.",
		Types: []Type{Int, Float, Decimal, Timestamp}, Exact: true,
		Parameters: []Parameter{{Name: "p", Form: Fraction}},
		Example:    "QUANTILE(30d, transaction, amount, user, p=0.95)",
	}
}

func (quantile) Fold(c Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	if values == nil {
		return Result{}
	}
	slices.SortFunc(values, Compare)
	// The shares are compared as quotients: 7/100 is 0.07, but 0.07*100 is more
	// than 7.
	i := sort.Search(len(values)-1, func(i int) bool { return float64(i+1)/float64(len(values)) >= c.P })
	return Result{Value: values[i], Found: true}
}
