package model

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
)

// through answers a multi-hop feature: it applies the function to the events of the first members
// of the set.
func (m *Model) through(f *features.Feature, hops *features.Through, call aggregate.Call, entity string, at int64) aggregate.Result {
	set := m.Answer(hops.Set, entity, at)
	var members []string
	for _, item := range set.Items {
		member := string(state.AppendEntity(nil, true, item.Value))
		if !slices.Contains(members, member) {
			members = append(members, member)
		}
	}
	more := len(members) > hops.Max
	members = members[:min(len(members), hops.Max)]
	each := m.answers[hops.Each]
	samples, capped := each.within(at, members...)
	r := fold(f, call, at, samples)
	r.Capped = r.Capped || capped || set.Capped || more
	return r
}
