package inspector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// LongKey is a key with the state of an entity in a group.
type LongKey struct {
	Group  string
	Entity string // its text, or its hash if entities are hashed
	Bytes  int64
}

// Greatest lists the longest state keys of a namespace, longest first, at most that many. It walks
// through the keys of each master, which takes about a second for a million of them, and stops when
// its time is over: looked is the number of keys seen, and all says whether these were all. It
// writes nothing.
func (s *Inspector) Greatest(ctx context.Context, most int, patience time.Duration) (list []LongKey, looked int, all bool, err error) {
	var mu sync.Mutex // masters are visited at once
	all = true
	until := time.Now().Add(patience)
	walk := func(ctx context.Context, c redis.Cmdable) error {
		cursor := uint64(0)
		for {
			keys, next, err := c.Scan(ctx, cursor, keyspace.Pattern(s.namespace), 1000).Result()
			if err != nil {
				return fmt.Errorf("walk over the keys: %w", err)
			}
			found, err := lengths(ctx, c, keys)
			if err != nil {
				return fmt.Errorf("look at the lengths of keys: %w", err)
			}
			mu.Lock()
			looked += len(found)
			list = longest(append(list, found...), most)
			mu.Unlock()
			if cursor = next; cursor == 0 {
				return nil
			}
			if time.Now().After(until) {
				mu.Lock()
				defer mu.Unlock()
				all = false
				return nil
			}
		}
	}
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return walk(ctx, c) })
	} else {
		err = walk(ctx, s.redis)
	}
	return list, looked, all, err
}

// longest are the longest keys of a list, at most that many.
func longest(list []LongKey, most int) []LongKey {
	slices.SortFunc(list, func(a, b LongKey) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Entity, b.Entity))
	})
	return list[:min(len(list), most)]
}

// lengths are those of the keys that hold state. A key that is gone has none; one of another type
// is damaged, and skipped here.
func lengths(ctx context.Context, c redis.Cmdable, keys []string) (list []LongKey, err error) {
	pipe := c.Pipeline()
	var asked []*redis.IntCmd
	for _, key := range keys {
		_, rest, _ := strings.Cut(key, "}")
		if group, entity, ok := strings.Cut(rest, ":"); ok {
			list = append(list, LongKey{Group: group, Entity: entity})
			asked = append(asked, pipe.StrLen(ctx, key))
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, cmd := range asked {
		if err := cmd.Err(); err != nil && !keyspace.Foreign(err) {
			return nil, err
		}
		list[i].Bytes = cmd.Val()
	}
	return list, nil
}
