package inspector

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// CountKeys counts the keys of a namespace by group. Of a master with more than `most` keys it looks at about as many.
// SCAN returns them in the order of their hashes, so they are a fair sample. It reads only the names of keys.
func (s *Inspector) CountKeys(ctx context.Context, most int64) (state.KeyCount, error) {
	all := state.KeyCount{Groups: map[string]int64{}, Embeds: true}
	var mu sync.Mutex // masters are scanned concurrently
	count := func(ctx context.Context, c redis.Cmdable) error {
		keys, err := c.DBSize(ctx).Result()
		if err != nil {
			return fmt.Errorf("ask for the number of keys: %w", err)
		}
		groups, looked := map[string]int64{}, int64(0)
		for cursor := uint64(0); ; {
			var names []string
			if names, cursor, err = c.Scan(ctx, cursor, "*", 1000).Result(); err != nil {
				return fmt.Errorf("walk over the keys: %w", err)
			}
			looked += int64(len(names))
			for _, name := range names {
				if tag, group, _, ok := keyspace.SplitKey(name); ok && strings.HasPrefix(tag, "{"+s.namespace+":") {
					groups[group]++
				}
			}
			if cursor == 0 {
				keys = looked // some may have been added or deleted meanwhile
				break
			}
			if looked >= most {
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all.Keys, all.Looked = all.Keys+keys, all.Looked+looked
		for group, n := range groups {
			all.Groups[group] += n * keys / max(looked, 1)
		}
		return nil
	}
	var err error
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return count(ctx, c) })
	} else {
		err = count(ctx, s.redis)
	}
	return all, err
}
