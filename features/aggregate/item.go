package aggregate

import "github.com/weir-stream/weir/value"

// Shape is the shape of a value.
type Shape uint8

// The shapes.
const (
	Scalar     Shape = iota
	List             // of values
	Counts           // values, and how many events have each
	Bins             // ranges of values, and how many events fall into each
	Categories       // one value for each category
)

// String returns the shape's name; empty for a scalar.
func (s Shape) String() string { return [...]string{"", "list", "counts", "bins", "categories"}[s] }

// Item is one element of a value that is not a scalar.
type Item struct {
	Value    value.Value // of List, Counts and Categories
	Category value.Value // of Categories
	// From and To bound a range of Bins; To is exclusive. A null leaves that side open.
	From, To value.Value
	Count    int64 // of Counts and Bins
}

// listOf makes the result of a list; it is found if it has an element.
func listOf(values []value.Value) Result {
	var items []Item
	for _, v := range values {
		items = append(items, Item{Value: v})
	}
	return Result{Items: items, Found: len(items) > 0}
}

// IsNull reports whether there is neither a scalar nor a list.
func (r Result) IsNull() bool { return r.Items == nil && r.Value.IsNull() }
