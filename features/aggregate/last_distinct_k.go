package aggregate

import (
	"slices"

	"github.com/weir-stream/weir/value"
)

// lastDistinctK lists the distinct values of a field with the latest events.
type lastDistinctK struct{}

func (lastDistinctK) Spec() Spec {
	return Spec{
		Name: "last_distinct_k", Title: "the `k` distinct values of a field that were seen last, the latest first",
		Types: distinctTypes, Exact: true, Parameters: []Parameter{kParameter}, Shape: List,
		Example: "LAST_DISTINCT_K(7d, transaction, merchant, user, k=5)",
	}
}

func (lastDistinctK) Fold(c Call, _ int64, events []Sample) Result {
	var values []value.Value
	seen := map[string]bool{}
	for _, v := range slices.Backward(fieldOf(events)) {
		text := string(v.AppendText(nil))
		if seen[text] {
			continue
		}
		seen[text] = true
		if values = append(values, v); len(values) == c.N {
			break
		}
	}
	return listOf(values)
}

// Settled implements Latest.
func (f lastDistinctK) Settled(c Call, events []Sample) bool {
	return len(f.Fold(c, 0, events).Items) == c.N
}
