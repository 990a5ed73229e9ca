package redisstore

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

//go:embed busiest.lua
var busiestLua string

// busiestKey holds what processors publish about their busiest entities; see busiest.lua.
func busiestKey(namespace string) string { return namespace + ":busiest" }

// PublishBusiest records the busiest entities of a processor, by their names in keys.
func (s *Store) PublishBusiest(ctx context.Context, processor string, b state.Busiest) error {
	text, err := json.Marshal(s.named(b))
	if err != nil {
		return err
	}
	key := busiestKey(s.namespace)
	script := redis.NewCmd(ctx, "eval", busiestLua, 1, key, processor, text, state.BusiestFor.Milliseconds())
	script.SetFirstKeyPos(3)
	if err := s.sendAbout(ctx, key, script); err != nil {
		return fmt.Errorf("publish the busiest entities: %w", err)
	}
	return nil
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

// Busiest reads what processors have published lately. A processor that ended is dropped by the next
// one that publishes, or with the key.
func (s *Store) Busiest(ctx context.Context) (list []state.Busiest, err error) {
	key := busiestKey(s.namespace)
	command := redis.NewMapStringStringCmd(ctx, "hgetall", key)
	if err := s.sendAbout(ctx, key, command); err != nil {
		return nil, fmt.Errorf("read the busiest entities: %w", err)
	}
	for _, processor := range slices.Sorted(maps.Keys(command.Val())) {
		_, text, _ := strings.Cut(command.Val()[processor], ":")
		var b state.Busiest
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			return nil, fmt.Errorf("read the busiest entities of %s: %w", processor, err)
		}
		list = append(list, b)
	}
	return list, nil
}
