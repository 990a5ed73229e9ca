package redisstore

import (
	"fmt"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// remember notes where stands which of the pending events have arrived.
func (s *Store) remember(l *lookup, pending *state.Batch) {
	for i := range pending.Updates {
		t := &pending.Updates[i]
		id := pending.Identity(t)
		if id == nil || string(t.Entity) != l.entity || slices.Contains(l.ids, id.Series) {
			continue
		}
		ops := pending.Mutations[t.From:t.To]
		if !slices.ContainsFunc(ops, func(op state.Mutation) bool { return op.Series.Group == l.group }) {
			continue // it is about another kind of entity of the same text
		}
		l.ids = append(l.ids, id.Series)
		if id.Series.Group != l.group {
			at := s.locate(id.Series, l.entity)
			l.idsAt = &at
		}
	}
}

// overlay applies to what is held what is pending.
func (l *lookup) overlay(held *states, packedIDs []byte, pending *state.Batch) error {
	ids := states{secret: held.secret}
	for _, s := range l.ids {
		ids.look(s, false)
	}
	ids.ready()
	if err := ids.merge(packedIDs); err != nil {
		key := l.key
		if l.idsAt != nil {
			key = l.idsAt.key
		}
		return keyspace.NewError(key, fmt.Errorf("the ids: %w", err))
	}
	packed.Overlay(pending, l.entity, func(s *state.Series) packed.State {
		if s.Measure == state.Identify && slices.Contains(l.ids, s) {
			return ids.of(s.Tag())
		}
		if s.Group != l.group {
			return nil
		}
		return held.of(s.Tag())
	})
	return nil
}
