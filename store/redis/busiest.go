package redisstore

import (
	"context"
	"slices"

	"github.com/weir-stream/weir/state"
)

// PublishBusiest records the busiest entities of a processor, by their names in keys.
func (s *Store) PublishBusiest(ctx context.Context, processor string, b state.Busiest) error {
	return s.Protocol.PublishBusiest(ctx, processor, s.named(b))
}

// named hashes the entities if keys do.
func (s *Store) named(b state.Busiest) state.Busiest {
	if s.hashing == nil {
		return b
	}
	named := state.Busiest{Since: b.Since, Hashed: true, Keys: slices.Clone(b.Keys)}
	for i := range named.Keys {
		k := &named.Keys[i]
		k.Entities = slices.Clone(k.Entities)
		for j := range k.Entities {
			k.Entities[j].Entity = string(s.hashing.AppendName(nil, []byte(k.Entities[j].Entity)))
		}
	}
	return named
}
