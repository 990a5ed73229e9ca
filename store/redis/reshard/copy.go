package reshard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

const (
	// walkKeys is about how many keys a server is asked for at once: it takes about a millisecond of it.
	walkKeys = 1000
	// copiedKeys is how many keys are read at once. Each has less than a mebibyte.
	copiedKeys = 64
)

// copying copies the shards of one number to those of a multiple of it.
type copying struct {
	*Resharder
	from, to []string       // tags
	shards   map[string]int // by tag, those of from
	wanted   map[int]bool   // the new shards to be copied
}

func newCopying(r *Resharder, from, to int) *copying {
	c := &copying{Resharder: r, from: tags(r.Namespace, from), to: tags(r.Namespace, to), shards: map[string]int{}, wanted: map[int]bool{}}
	for shard, tag := range c.from {
		c.shards[tag] = shard
	}
	return c
}

// run copies all new shards, or only those that are frozen.
func (c *copying) run(ctx context.Context, onlyFrozen bool) error {
	if onlyFrozen {
		list, err := c.frozen(ctx)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, shard := range list {
			c.wanted[shard] = true
		}
	} else {
		for shard := range c.to {
			c.wanted[shard] = true
		}
	}
	if err := c.freeze(ctx); err != nil {
		return err
	}
	if err := c.walk(ctx, c.copyKeys); err != nil {
		return fmt.Errorf("copy the keys: %w", err)
	}
	// Copies that a failover has lost, or keys that slots took elsewhere while they were walked over, are found here.
	if err := c.walk(ctx, c.compareKeys); err != nil {
		return fmt.Errorf("compare the keys with their copies: %w", err)
	}
	return c.unfreeze(ctx)
}

// frozen are the new shards that do not have everything yet.
func (c *copying) frozen(ctx context.Context) (list []int, err error) {
	pipe := c.Redis.Pipeline()
	replies := make([]*redis.BoolCmd, len(c.to))
	for shard, tag := range c.to {
		replies[shard] = pipe.HExists(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read which shards are frozen: %w", err)
	}
	for shard, reply := range replies {
		if reply.Val() {
			list = append(list, shard)
		}
	}
	return list, nil
}

// freeze has nothing change the old shards any more, nor the new ones until they are copied.
func (c *copying) freeze(ctx context.Context) error {
	pipe := c.Redis.Pipeline()
	for _, tag := range c.from {
		pipe.HSet(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField, 1)
	}
	for shard := range c.wanted {
		pipe.HSet(ctx, keyspace.ProgressKey(c.to[shard]), keyspace.FrozenField, 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("freeze the shards: %w", err)
	}
	return nil
}

// unfreeze gives the new shards their progress, by which they are whole.
func (c *copying) unfreeze(ctx context.Context) error {
	for _, shard := range slices.Sorted(maps.Keys(c.wanted)) {
		fields, err := c.Redis.HGetAll(ctx, keyspace.ProgressKey(c.from[shard%len(c.from)])).Result()
		if err != nil {
			return fmt.Errorf("read the progress of shard %d: %w", shard%len(c.from), err)
		}
		delete(fields, keyspace.FrozenField)
		key := keyspace.ProgressKey(c.to[shard])
		_, err = c.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Del(ctx, key)
			if len(fields) > 0 {
				pipe.HSet(ctx, key, fields)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("write the progress of shard %d of %d: %w", shard, len(c.to), err)
		}
	}
	return nil
}

// walk passes all keys of the namespace's shards, by master, a few times some of them. Masters are visited at once.
func (r *Resharder) walk(ctx context.Context, visit func(ctx context.Context, keys []string) error) error {
	each := func(ctx context.Context, server redis.Cmdable) error {
		for cursor := uint64(0); ; {
			keys, next, err := server.Scan(ctx, cursor, keyspace.Pattern(r.Namespace), walkKeys).Result()
			if err != nil {
				return err
			}
			for some := range slices.Chunk(keys, copiedKeys) {
				if err := visit(ctx, some); err != nil {
					return err
				}
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	cluster, ok := r.Redis.(*redis.ClusterClient)
	if !ok {
		return each(ctx, r.Redis)
	}
	before, err := slotsOf(ctx, cluster)
	if err != nil {
		return err
	}
	if err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error { return each(ctx, master) }); err != nil {
		return err
	}
	after, err := slotsOf(ctx, cluster)
	if err != nil {
		return err
	}
	if !maps.Equal(before, after) {
		return errors.New("masters of the cluster have changed meanwhile, so keys may have been missed: run it again")
	}
	return nil
}

// slotsOf is which master has which slots.
func slotsOf(ctx context.Context, cluster *redis.ClusterClient) (map[[2]int]string, error) {
	slots, err := cluster.ClusterSlots(ctx).Result() //nolint:staticcheck // CLUSTER SHARDS needs Redis 7.0
	if err != nil {
		return nil, fmt.Errorf("read the slots of the cluster: %w", err)
	}
	owners := map[[2]int]string{}
	for _, s := range slots {
		if len(s.Nodes) > 0 {
			owners[[2]int{s.Start, s.End}] = s.Nodes[0].ID
		}
	}
	return owners, nil
}

// What PTTL says of a key that does not expire, and of one that is not there.
const (
	livesForever = time.Duration(-1)
	keyGone      = time.Duration(-2)
)

// copied is a key of an old shard, and where it is copied to.
type copied struct {
	key, target string
	value       *redis.StringCmd
	lives       *redis.DurationCmd
}

// targets are the keys that belong to the new shards wanted.
func (c *copying) targets(keys []string) (list []copied) {
	for _, key := range keys {
		tag, _, name, ok := keyspace.SplitKey(key)
		if _, old := c.shards[tag]; !ok || !old {
			continue
		}
		if shard := keyspace.ShardOfName([]byte(name), len(c.to)); c.wanted[shard] {
			list = append(list, copied{key: key, target: c.to[shard] + key[len(tag):]})
		}
	}
	return list
}

func (c *copying) copyKeys(ctx context.Context, keys []string) error {
	list := c.targets(keys)
	pipe := c.Redis.Pipeline()
	for i := range list {
		list[i].value, list[i].lives = pipe.Get(ctx, list[i].key), pipe.PTTL(ctx, list[i].key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	pipe = c.Redis.Pipeline()
	for _, k := range list {
		lives := k.lives.Val()
		switch err := errors.Join(k.value.Err(), k.lives.Err()); {
		case errors.Is(err, redis.Nil) || lives == keyGone:
			continue
		case keyspace.Foreign(k.value.Err()):
			return foreign(k.key)
		case err != nil:
			return err
		case lives == livesForever:
			lives = 0
		case lives == 0:
			lives = time.Millisecond
		}
		pipe.Set(ctx, k.target, k.value.Val(), lives)
	}
	if pipe.Len() == 0 {
		return nil
	}
	_, err := pipe.Exec(ctx)
	c.Report("copied", len(list))
	return err
}

// foreign is the error of a key that cannot be copied. The entity is named, which an operator needs to drop it.
func foreign(key string) error {
	return fmt.Errorf("key %q: %w; weir reshard --cancel, drop it with weir state drop, and run this again", key, keyspace.ErrForeign)
}

// compareKeys compares keys with their copies. One that differs is copied once more: a compaction may have come in between.
func (c *copying) compareKeys(ctx context.Context, keys []string) error {
	differ, err := c.differing(ctx, keys)
	if err != nil {
		return err
	}
	if len(differ) > 0 {
		if err := c.copyKeys(ctx, differ); err != nil {
			return err
		}
		if differ, err = c.differing(ctx, differ); err != nil {
			return err
		}
	}
	if len(differ) > 0 {
		return keyspace.NewError(differ[0], errors.New("its copy is not the same: run it again"))
	}
	return nil
}

// differing are the keys whose copies are not the same.
func (c *copying) differing(ctx context.Context, keys []string) (list []string, err error) {
	targets := c.targets(keys)
	if len(targets) == 0 {
		return nil, nil
	}
	pipe := c.Redis.Pipeline()
	copies := make([]*redis.StringCmd, len(targets))
	for i := range targets {
		// The copy is read first: if it was there and the key has expired since, both are gone.
		copies[i], targets[i].value = pipe.Get(ctx, targets[i].target), pipe.Get(ctx, targets[i].key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, k := range targets {
		for _, reply := range []*redis.StringCmd{copies[i], k.value} {
			if err := reply.Err(); err != nil && !errors.Is(err, redis.Nil) {
				return nil, err
			}
		}
		gone := errors.Is(k.value.Err(), redis.Nil)
		if !gone && (copies[i].Err() != nil || copies[i].Val() != k.value.Val()) {
			list = append(list, k.key)
		}
	}
	c.Report("compared", len(targets))
	return list, nil
}
