package kinds

import "slices"

// histogram counts the values of a field by the ranges that they fall into.
type histogram struct{}

func (histogram) Spec() Spec {
	return Spec{
		Name: "histogram", Title: "number of values of a field in each of some ranges",
		Note:  "`bins` are the edges between the ranges: below the first, from each up to the next, and from the last on. A range has its lower edge and not its upper one.",
		Types: []Type{Int, Float, Decimal}, Exact: true,
		Parameters: []Parameter{{Name: "bins", Form: Edges, Least: 1, Most: 100}}, Shape: Bins,
		Example: "HISTOGRAM(30d, transaction, amount, user, bins=[10, 100, 1000])",
	}
}

func (histogram) Fold(c Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	if values == nil {
		return Result{}
	}
	items := make([]Item, len(c.Bins)+1)
	for i, edge := range c.Bins {
		items[i].To, items[i+1].From = edge, edge
	}
	for _, v := range values {
		i, onEdge := slices.BinarySearchFunc(c.Bins, v, Compare)
		if onEdge {
			i++
		}
		items[i].Count++
	}
	return Result{Items: items, Found: true}
}
