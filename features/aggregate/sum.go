package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// sum is the sum of a numeric field; nulls are passed over.
type sum struct{}

var numeric = []value.Type{value.Int, value.Float, value.Decimal}

func (sum) Spec() Spec {
	return Spec{
		Name: "sum", Title: "sum of a field",
		Note:  "Of ints and decimals it is exact in 128 bits: one that leaves the 64 bits of a field is written with all its digits.",
		Types: numeric, Exact: true, Through: true, Neutral: value.Value{Type: value.Int},
		Example: "SUM(1d, transaction, amount, user)",
	}
}

func (sum) Measures(Call) []state.Measure { return []state.Measure{state.Sum} }

func (sum) Merge(c Call, _ int64, s []state.WindowState) Result {
	return summed(c, s[0].Buckets)
}

func (sum) Fold(c Call, _ int64, events []Sample) Result {
	return summed(c, valuesOf(events))
}

// summed states a sum that leaves 128 bits, or the range of floats, as capped.
func summed(c Call, cells []state.Bucket) Result {
	v := add(c, cells)
	return Result{Value: v.Finite(), Found: len(cells) > 0, Capped: v.Saturated()}
}

// add adds up cells of the field's type.
func add(c Call, cells []state.Bucket) value.Value {
	v := value.Value{Type: c.Type, Scale: c.Scale}
	for _, cell := range cells {
		v = value.Add(v, cell.Value)
	}
	return v
}

// valuesOf gives every value of the events that is not null a cell of its own.
func valuesOf(events []Sample) []state.Bucket {
	cells := make([]state.Bucket, 0, len(events))
	for _, e := range events {
		if !e.Value.IsNull() {
			cells = append(cells, state.Bucket{Tile: e.Time, Value: e.Value})
		}
	}
	return cells
}
