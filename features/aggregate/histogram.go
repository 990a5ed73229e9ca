package aggregate

import (
	"encoding/binary"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// histogram counts the values of a field by the ranges that they fall into.
type histogram struct{}

func (histogram) Spec() Spec {
	return Spec{
		Name: "histogram", Title: "number of values of a field in each of several ranges",
		Note:  "`bins` are the edges between the ranges, of which there is one more. A range includes its lower edge and excludes its upper one.",
		Types: []value.Type{value.Int, value.Float, value.Decimal}, Exact: true,
		Parameters: []Parameter{{Name: "bins", Type: Edges, Min: 1, Max: 100}}, Shape: Bins,
		Example: "HISTOGRAM(30d, transaction, amount, user, bins=[10, 100, 1000])",
	}
}

func (histogram) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }

func (histogram) Keys(c Call) Keys {
	name := []byte("bins")
	for _, edge := range c.Bins {
		name = edge.AppendText(append(name, ' '))
	}
	return Keys{Name: string(name), Append: func(dst []byte, v value.Value) []byte {
		return binary.AppendUvarint(dst, uint64(rangeOf(c, v)))
	}}
}

func (histogram) Merge(c Call, _ int64, s []state.WindowState) Result {
	if len(s[0].Groups) == 0 {
		return Result{}
	}
	items := ranges(c)
	for _, g := range s[0].Groups {
		if i, n := binary.Uvarint([]byte(g.Key)); n > 0 && i < uint64(len(items)) {
			items[i].Count += total(g.Buckets)
		}
	}
	return Result{Items: items, Found: true}
}

func (histogram) Fold(c Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	if values == nil {
		return Result{}
	}
	items := ranges(c)
	for _, v := range values {
		items[rangeOf(c, v)].Count++
	}
	return Result{Items: items, Found: true}
}

// ranges returns the empty ranges between the edges.
func ranges(c Call) []Item {
	items := make([]Item, len(c.Bins)+1)
	for i, edge := range c.Bins {
		items[i].To, items[i+1].From = edge, edge
	}
	return items
}

// rangeOf returns the index of the range that contains a value.
func rangeOf(c Call, v value.Value) int {
	i, onEdge := slices.BinarySearchFunc(c.Bins, v, value.Compare)
	if onEdge {
		i++
	}
	return i
}
