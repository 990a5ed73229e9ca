package features

import (
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
)

// DefaultCategories is how many categories a feature has values for from tiles,
// unless its definition says otherwise.
const DefaultCategories = 100

// Fold computes the feature from the events of its window; see aggregate.Function.
func (f *Feature) Fold(at int64, events []aggregate.Sample) aggregate.Result {
	if f.Per != "" {
		return aggregate.FoldPer(f.Kind, f.Call, at, events)
	}
	return f.Kind.Fold(f.Call, at, events)
}

// Merge computes the feature from what its series hold in tiles; see
// aggregate.Mergeable.
func (f *Feature) Merge(slices []state.WindowState, at int64) aggregate.Result {
	r := f.mergeWhole(slices, at)
	for i := range slices {
		r.Capped = r.Capped || slices[i].Capped
	}
	return r
}

// mergeWhole is Merge as if all were kept under keys.
func (f *Feature) mergeWhole(slices []state.WindowState, at int64) aggregate.Result {
	kind := f.Kind.(aggregate.Mergeable)
	if f.Per != "" {
		per := f.Stream.Fields[f.Stream.FieldIndex(f.Per)]
		return aggregate.MergePer(kind, f.Call, per.Type, per.Scale, at, slices)
	}
	return kind.Merge(f.Call, at, slices)
}
