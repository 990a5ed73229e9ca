package inspector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

const (
	// walkStep is about how many keys a master is asked for at once, and then for the sizes of those
	// with state. Either takes it about half a millisecond, for which questions wait.
	walkStep = 500
	// candidates is how many keys are asked for their lengths, in multiples of the number wanted.
	candidates = 4
)

// Greatest lists the longest state keys of a namespace, longest first, at most that many. It walks
// through the keys of each master, takes at most half of its time, which is some seconds for a million
// keys, and stops when its patience is over. It writes nothing. An error says which masters did not
// answer; the list then has the keys of the others.
//
// The walk asks for the memory of the keys, not for their lengths: that would end their idle time,
// which sweeps go by. Memory includes what Redis reserves for appends, up to as much as there is, so
// a few times as many keys as wanted are asked for their lengths in the end.
func (s *Inspector) Greatest(ctx context.Context, most int, patience time.Duration) (state.LongKeys, error) {
	found := state.LongKeys{Hashed: s.hashing != nil, All: true}
	var failures []error
	var mu sync.Mutex // masters are visited at once
	until := time.Now().Add(patience)
	visit := func(ctx context.Context, c redis.Cmdable, master string) {
		of, err := s.walk(ctx, c, most, until)
		for i := range of.Keys {
			of.Keys[i].Server = master
		}
		mu.Lock()
		defer mu.Unlock()
		found.Keys = longest(append(found.Keys, of.Keys...), most)
		found.Looked += of.Looked
		found.All = found.All && of.All
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", cmp.Or(master, "Redis"), reworded.Connection(err)))
		}
	}
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			visit(ctx, c, c.Options().Addr)
			return nil
		})
		if err != nil {
			return state.LongKeys{}, fmt.Errorf("find the masters: %w", reworded.Connection(err))
		}
	} else {
		visit(ctx, s.redis, "")
	}
	slices.SortFunc(failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return found, errors.Join(failures...)
}

// walk lists the longest keys of one master, of those that it looks at until a moment.
func (s *Inspector) walk(ctx context.Context, c redis.Cmdable, most int, until time.Time) (found state.LongKeys, err error) {
	shards := map[string]int{}
	for shard, tag := range s.tags {
		shards[tag] = shard
	}
	memory := func(p redis.Pipeliner, key string) *redis.IntCmd { return p.MemoryUsage(ctx, key) }
	for cursor := uint64(0); ; {
		began := time.Now()
		var names []string
		if names, cursor, err = c.Scan(ctx, cursor, keyspace.Pattern(s.namespace), walkStep).Result(); err != nil {
			return state.LongKeys{}, fmt.Errorf("walk over the keys: %w", err)
		}
		var keys []state.LongKey
		for _, name := range names {
			tag, group, entity, ok := keyspace.SplitKey(name)
			// Shards of another number are those before a reshard, or after it.
			if shard, present := shards[tag]; ok && present {
				keys = append(keys, state.LongKey{Key: name, Group: group, Entity: entity, Shard: shard})
			}
		}
		found.Looked += len(keys)
		if keys, err = measure(ctx, s.redis, keys, memory); err != nil {
			return state.LongKeys{}, fmt.Errorf("look at the memory of keys: %w", err)
		}
		found.Keys = longest(append(found.Keys, keys...), candidates*most)
		found.All = cursor == 0
		if found.All {
			break
		}
		select { // rest as long as the step took
		case <-time.After(min(time.Since(began), time.Until(until))):
		case <-ctx.Done():
			return state.LongKeys{}, ctx.Err()
		}
		if !time.Now().Before(until) {
			break
		}
	}
	length := func(p redis.Pipeliner, key string) *redis.IntCmd { return p.StrLen(ctx, key) }
	if found.Keys, err = measure(ctx, s.redis, found.Keys, length); err != nil {
		return state.LongKeys{}, fmt.Errorf("look at the lengths of keys: %w", err)
	}
	return found, nil
}

// longest are the longest of some keys, each once, at most that many.
func longest(keys []state.LongKey, most int) []state.LongKey {
	slices.SortFunc(keys, func(a, b state.LongKey) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Group, b.Group), strings.Compare(a.Entity, b.Entity))
	})
	keys = slices.CompactFunc(keys, func(a, b state.LongKey) bool { return a.Key == b.Key }) // a walk may meet a key twice
	return keys[:min(len(keys), most)]
}

// measure sets the sizes of keys as a command tells them, and leaves out those that are gone, or that
// something else has written.
func measure(ctx context.Context, c redis.Cmdable, keys []state.LongKey, size func(redis.Pipeliner, string) *redis.IntCmd) (measured []state.LongKey, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	pipe := c.Pipeline()
	sizes := make([]*redis.IntCmd, len(keys))
	for i, k := range keys {
		sizes[i] = size(pipe, k.Key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, k := range keys {
		err := sizes[i].Err()
		if err != nil && !errors.Is(err, redis.Nil) && !keyspace.Foreign(err) {
			return nil, err
		}
		if k.Bytes = sizes[i].Val(); k.Bytes > 0 {
			measured = append(measured, k)
		}
	}
	return measured, nil
}
