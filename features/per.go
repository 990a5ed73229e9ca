package features

import (
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// DefaultCategories is how many categories a feature answers from tiles unless its definition says
// otherwise.
const DefaultCategories = 100

// Fold computes the feature from the events of its window; see aggregate.Function. The secret is that with which the
// store hashes values; it matters only to lists that have more than their max.
func (f *Feature) Fold(at int64, events []aggregate.Sample, secret state.Secret) aggregate.Result {
	call := f.Call
	call.Secret = secret
	if f.Per != "" {
		return aggregate.FoldPer(f.Function, call, at, events)
	}
	return f.Function.Fold(call, at, events)
}

// Settled reports whether events before these, the last ones of the window, cannot change the feature's value.
func (f *Feature) Settled(events []aggregate.Sample) bool {
	function, ok := f.Function.(aggregate.Latest)
	_, fixed := f.Window.Type.(window.Fixed) // which may have begun after them
	return ok && f.Per == "" && !fixed && function.Settled(f.Call, events)
}

// Merge computes the feature from the tiles of its series; see aggregate.Mergeable.
func (f *Feature) Merge(states []state.WindowState, at int64) (r aggregate.Result) {
	if function := f.Function.(aggregate.Mergeable); f.Per == "" {
		r = function.Merge(f.Call, at, states)
	} else {
		per := f.Stream.Fields[f.Stream.FieldIndex(f.Per)]
		r = aggregate.MergePer(function, f.Call, per.Type, per.Scale, at, states)
	}
	for i := range states { // keys may have been dropped
		r.Capped = r.Capped || states[i].Capped
	}
	return r
}
