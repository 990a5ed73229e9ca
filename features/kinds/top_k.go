package kinds

import (
	"cmp"
	"slices"
)

// mode is the most frequent value of a field, and topK are the most frequent
// ones.
type (
	mode struct{}
	topK struct{}
)

func (mode) Spec() Spec {
	return Spec{
		Name: "mode", Title: "most frequent value of a field", Note: tieNote, Types: anyType, Exact: true,
		Example: "MODE(30d, transaction, merchant, user)",
	}
}

func (topK) Spec() Spec {
	return Spec{
		Name: "top_k", Title: "the `k` most frequent values of a field, each with its number of events", Note: tieNote,
		Types: anyType, Exact: true, Parameters: []Parameter{kParameter}, Shape: Counts,
		Example: "TOP_K(30d, transaction, merchant, user, k=3)",
	}
}

const tieNote = "Of values that are equally frequent the least comes first."

func (mode) Fold(_ Call, _ int64, events []Sample) Result {
	items := frequencies(events)
	if items == nil {
		return Result{}
	}
	return Result{Value: items[0].Value, Found: true}
}

func (topK) Fold(c Call, _ int64, events []Sample) Result {
	items := frequencies(events)
	return Result{Items: items[:min(c.N, len(items))], Found: items != nil}
}

// frequencies are the different values of the field, the most frequent first.
func frequencies(events []Sample) []Item {
	values := fieldOf(events)
	slices.SortFunc(values, Compare)
	var items []Item
	for _, v := range values {
		if last := len(items) - 1; last >= 0 && Compare(items[last].Value, v) == 0 {
			items[last].Count++
			continue
		}
		items = append(items, Item{Value: v, Count: 1})
	}
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(b.Count, a.Count) })
	return items
}
