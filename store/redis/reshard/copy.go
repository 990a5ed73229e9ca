package reshard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

const (
	// walkKeys is about how many keys a server is asked for at once: it takes about a millisecond of it.
	walkKeys = 1000
	// copiedKeys is how many keys are read at once. Each has less than a mebibyte.
	copiedKeys = 64
	// fewKeys is how many keys are copied within the tenth of a second that events may well wait.
	fewKeys = 1000
	// rounds is how often what has changed meanwhile is copied before events wait, however much it is.
	rounds = 20
	// shardsAtOnce is the number of shards whose changed keys are copied at the same time.
	shardsAtOnce = 4
)

// copyAll copies all keys, and compares them with their copies: keys are found that slots took elsewhere while they were walked
// over, and copies that were lost.
func (c *copying) copyAll(ctx context.Context) error {
	if err := c.walk(ctx, c.copyKeys); err != nil {
		return fmt.Errorf("copy the keys: %w", err)
	}
	if err := c.walk(ctx, c.compareKeys); err != nil {
		return fmt.Errorf("compare the keys with their copies: %w", err)
	}
	return nil
}

// catchUp copies the keys that have changed meanwhile, until few are left.
func (c *copying) catchUp(ctx context.Context) error {
	for range rounds {
		if n, err := c.copyChanged(ctx); err != nil || n < fewKeys {
			return err
		}
	}
	return nil
}

// copyLast copies the keys that have changed until the shards were frozen.
func (c *copying) copyLast(ctx context.Context) error {
	_, err := c.copyChanged(ctx)
	return err
}

// copyChanged copies the keys that have changed since it began last. It returns their number.
func (c *copying) copyChanged(ctx context.Context) (int64, error) {
	var (
		copied atomic.Int64
		shards = make(chan string)
		errs   = make([]error, shardsAtOnce)
		copies sync.WaitGroup
	)
	for i := range errs {
		copies.Go(func() {
			for tag := range shards {
				n, err := c.copyChangedOf(ctx, tag)
				copied.Add(n)
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	for _, tag := range c.from {
		shards <- tag
	}
	close(shards)
	copies.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, fmt.Errorf("copy the keys that have changed: %w", err)
	}
	return copied.Load(), nil
}

// taken is the set of the changed keys that are being copied.
func taken(changed string) string { return changed + "/taken" }

// copyChangedOf copies the keys of one shard that have changed. Until they are copied, their names stay in a set: a request whose
// reply is lost may be repeated.
func (c *copying) copyChangedOf(ctx context.Context, tag string) (int64, error) {
	changed := keyspace.ChangedKey(tag, c.token)
	names := taken(changed)
	n, err := c.Redis.Eval(ctx, takeLua, []string{changed, names}).Int64()
	if err != nil || n == 0 {
		return 0, err
	}
	for cursor := uint64(0); ; {
		var keys []string
		if keys, cursor, err = c.Redis.SScan(ctx, names, cursor, "", walkKeys).Result(); err != nil {
			return 0, err
		}
		for some := range slices.Chunk(keys, copiedKeys) {
			if err := c.copyKeys(ctx, some); err != nil {
				return 0, err
			}
		}
		if cursor == 0 {
			return n, c.Redis.Unlink(ctx, names).Err()
		}
	}
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
	shard       int // the new one
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
			list = append(list, copied{key: key, target: c.to[shard] + key[len(tag):], shard: shard})
		}
	}
	return list
}

// copyKeys copies keys as they are now. One that is gone is deleted.
func (c *copying) copyKeys(ctx context.Context, keys []string) error {
	list := c.targets(keys)
	if len(list) == 0 {
		return nil
	}
	pipe := c.Redis.Pipeline()
	for i := range list {
		list[i].value, list[i].lives = pipe.Get(ctx, list[i].key), pipe.PTTL(ctx, list[i].key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	targets, args := map[int][]string{}, map[int][]any{}
	for _, k := range list {
		content, lives, err := k.held()
		if err != nil {
			return err
		}
		if targets[k.shard] == nil {
			targets[k.shard], args[k.shard] = []string{keyspace.ProgressKey(c.to[k.shard])}, []any{c.token}
		}
		targets[k.shard], args[k.shard] = append(targets[k.shard], k.target), append(args[k.shard], content, lives)
	}
	pipe = c.Redis.Pipeline()
	for shard, keys := range targets {
		pipe.Eval(ctx, copyLua, keys, args[shard]...)
	}
	_, err := pipe.Exec(ctx)
	c.Report("copied", len(list))
	return err
}

// held is what a key holds and how long it lives, as copy.lua takes it.
func (k *copied) held() (content, lives string, err error) {
	switch err := errors.Join(k.value.Err(), k.lives.Err()); {
	case errors.Is(err, redis.Nil) || k.lives.Val() == keyGone:
		return "", "gone", nil
	case keyspace.Foreign(k.value.Err()):
		return "", "", foreign(k.key)
	case err != nil:
		return "", "", err
	case k.lives.Val() == livesForever:
		return k.value.Val(), "0", nil
	}
	return k.value.Val(), strconv.FormatInt(max(k.lives.Val().Milliseconds(), 1), 10), nil
}

// foreign is the error of a key that cannot be copied. The entity is named, which an operator needs to drop it.
func foreign(key string) error {
	return fmt.Errorf("key %q: %w; drop it with weir state drop, and run this again", key, keyspace.ErrForeign)
}

// compareKeys compares keys with their copies. One that differs is copied again: it may have changed meanwhile.
func (c *copying) compareKeys(ctx context.Context, keys []string) error {
	differ, err := c.differing(ctx, keys)
	if err != nil || len(differ) == 0 {
		return err
	}
	return c.copyKeys(ctx, differ)
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
