package reshard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

const (
	// walkKeys is about how many keys one SCAN asks for, which takes the server about a millisecond.
	walkKeys = 1000
	// copiedKeys is how many keys are read at once. Each has less than 1 MiB.
	copiedKeys = 64
	// fewKeys is how many keys are copied in the tenth of a second that events can easily wait.
	fewKeys = 1000
	// rounds is how often changed keys are copied again before events must wait, even if many are left.
	rounds = 20
	// shardsAtOnce is the number of shards whose changed keys are copied at the same time.
	shardsAtOnce = 4
)

// copyAll copies all keys, and compares them with their copies. The comparison finds keys that SCAN missed because
// their slot moved, and copies that were lost.
func (c *copying) copyAll(ctx context.Context) error {
	if err := c.walk(ctx, c.copyKeys); err != nil {
		return fmt.Errorf("copy the keys: %w", err)
	}
	if err := c.walk(ctx, c.compareKeys); err != nil {
		return fmt.Errorf("compare the keys with their copies: %w", err)
	}
	return nil
}

// catchUp copies the keys that changed meanwhile, until few are left.
func (c *copying) catchUp(ctx context.Context) error {
	for range rounds {
		if n, err := c.copyChanged(ctx); err != nil || n < fewKeys {
			return err
		}
	}
	return nil
}

// copyLast copies the keys that changed before the shards were frozen.
func (c *copying) copyLast(ctx context.Context) error {
	_, err := c.copyChanged(ctx)
	return err
}

// copyChanged copies the keys that changed since its last call, and returns their number.
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

// taken returns the key of the set of changed keys that are being copied.
func taken(changed string) string { return changed + "/taken" }

// copyChangedOf copies the changed keys of one shard. Their names stay in a set until they are copied, so a request
// whose reply is lost may be repeated.
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

// walk passes all keys of the namespace's shards to visit, some of them more than once. It scans the masters
// concurrently.
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
	before, err := ownersOf(ctx, cluster)
	if err != nil {
		return err
	}
	if err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error { return each(ctx, master) }); err != nil {
		return err
	}
	after, err := ownersOf(ctx, cluster)
	if err != nil {
		return err
	}
	if !maps.Equal(before, after) {
		return errors.New("masters of the cluster have changed meanwhile, so keys may have been missed: run it again")
	}
	return nil
}

// ownersOf maps ranges of slots to the IDs of their masters, as each master says of itself: what other nodes say of it may
// be outdated. It returns an error unless the masters have all slots.
func ownersOf(ctx context.Context, cluster *redis.ClusterClient) (map[[2]int]string, error) {
	var mu sync.Mutex
	owners, owned := map[[2]int]string{}, 0
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		nodes, err := master.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		id, slots := ownSlots(nodes)
		mu.Lock()
		defer mu.Unlock()
		for _, of := range slots {
			owners[of] = id
			owned += of[1] - of[0] + 1
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the slots of the cluster: %w", err)
	}
	if owned != keyspace.Slots {
		return nil, fmt.Errorf("the masters of the cluster have %d of its %d slots, so keys would be missed: run it again once it is whole", owned, keyspace.Slots)
	}
	return owners, nil
}

// ownSlots returns the ID and the ranges of slots of the node that replies to CLUSTER NODES. Slots that are moving are in
// brackets, after the ranges of those that are the node's.
func ownSlots(nodes string) (id string, slots [][2]int) {
	const ranges = 8 // the first field of slots
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) < ranges || !strings.HasPrefix(fields[2], "myself") {
			continue
		}
		for _, text := range fields[ranges:] {
			first, last, isRange := strings.Cut(text, "-")
			if !isRange {
				last = first
			}
			from, err := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err == nil && err2 == nil {
				slots = append(slots, [2]int{from, to})
			}
		}
		id = fields[0]
	}
	return id, slots
}

// The replies of PTTL for a key that does not expire, and for one that does not exist.
const (
	livesForever = time.Duration(-1)
	keyGone      = time.Duration(-2)
)

// copied is a key of an old shard, and its copy in a new one.
type copied struct {
	key, target string
	shard       int // the new one
	value       *redis.StringCmd
	lives       *redis.DurationCmd
}

// targets returns the keys that belong to the wanted new shards.
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

// copyKeys copies keys as they are now. It deletes the copies of keys that are gone.
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

// held returns the content of a key and its time to live, as copy.lua takes them.
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

// foreign returns the error of a key that cannot be copied. It names the entity, because an operator needs that to drop
// it.
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

// differing returns the keys whose copies differ.
func (c *copying) differing(ctx context.Context, keys []string) (list []string, err error) {
	targets := c.targets(keys)
	if len(targets) == 0 {
		return nil, nil
	}
	pipe := c.Redis.Pipeline()
	copies := make([]*redis.StringCmd, len(targets))
	for i := range targets {
		// The copy is read first: if the key expires in between, it was in both or is in neither.
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
