package model

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
)

// multiHop answers a multi-hop feature: it applies the function to the events of the first members
// of the set.
func (m *Model) multiHop(f *features.Feature, multiHop *features.MultiHop, call aggregate.Call, entity string, at int64) aggregate.Result {
	set := m.Answer(multiHop.Set, entity, at)
	var members []string
	for _, item := range set.Items {
		member := string(state.AppendEntity(nil, true, item.Value))
		if !slices.Contains(members, member) {
			members = append(members, member)
		}
	}
	more := len(members) > multiHop.Max
	members = members[:min(len(members), multiHop.Max)]
	each := m.answers[multiHop.Each]
	samples, capped := each.within(at, members...)
	r := fold(f, call, at, samples)
	r.Capped = r.Capped || capped || set.Capped || more
	return withheld(r)
}
