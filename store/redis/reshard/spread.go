package reshard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// copying copies the shards of one number to those of a multiple of it.
type copying struct {
	*Resharder
	token    string         // of this attempt; see scripts.go
	from, to []string       // tags
	shards   map[string]int // by tag, those of from
	wanted   map[int]bool   // the new shards to be copied
}

func newCopying(r *Resharder, from, to int, token string) *copying {
	c := &copying{Resharder: r, token: token, from: tags(r.Namespace, from), to: tags(r.Namespace, to), shards: map[string]int{}, wanted: map[int]bool{}}
	for shard, tag := range c.from {
		c.shards[tag] = shard
	}
	return c
}

// errReplaced says that what was copied, or what it was copied from, may have gone back in time.
var errReplaced = errors.New("a Redis server was restarted or replaced while keys were copied: run it again")

// spread copies all shards while they are used, and switches over. If it fails, they are used as before. Again says that an
// earlier attempt may have left something.
func (c *copying) spread(ctx context.Context, again bool) (err error) {
	before, err := c.servers(ctx)
	if err != nil {
		return err
	}
	if err := c.begin(ctx, again); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = c.release(ending, c.token) // if this fails too, they wait for another run
		}
	}()
	for _, step := range []func(context.Context) error{
		c.copyAll, c.catchUp, c.Await,
		// From here on, events wait.
		c.freeze, c.copyLast, func(ctx context.Context) error { return c.same(ctx, before) }, c.Await, c.finish, c.switchOver,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mend copies again the new shards that a failover has left without everything. The old ones are frozen since the namespace
// was switched over.
func (c *copying) mend(ctx context.Context) error {
	before, err := c.servers(ctx)
	if err != nil {
		return err
	}
	for shard, tag := range c.to {
		lacks, err := c.Redis.Eval(ctx, reserveLua, []string{keyspace.ProgressKey(tag)}, c.token).Bool()
		if err != nil {
			return fmt.Errorf("read whether shard %d is complete: %w", shard, err)
		}
		if lacks {
			c.wanted[shard] = true
		}
	}
	if len(c.wanted) == 0 {
		return nil
	}
	for _, step := range []func(context.Context) error{
		c.copyAll, func(ctx context.Context) error { return c.same(ctx, before) }, c.Await, c.finish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin has all processes note what they change of the old shards, and none use the new ones.
func (c *copying) begin(ctx context.Context, again bool) error {
	if err := c.claim(ctx); err != nil {
		return err
	}
	if again {
		if err := c.release(ctx, ""); err != nil {
			return err
		}
		if err := c.deleteShards(ctx, len(c.to)); err != nil {
			return err
		}
	}
	pipe := c.Redis.Pipeline()
	for shard, tag := range c.to {
		c.wanted[shard] = true
		pipe.HSet(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField, c.token)
	}
	for _, tag := range c.from {
		pipe.HSet(ctx, keyspace.ProgressKey(tag), keyspace.CopyingField, c.token)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("record in the shards that they are being copied: %w", err)
	}
	return nil
}

// claim makes this the process that reshards the namespace.
func (c *copying) claim(ctx context.Context) error {
	err := c.Redis.Eval(ctx, beginLua, []string{keyspace.LayoutKey(c.Namespace)}, c.token, len(c.to), len(c.from)).Err()
	if err != nil {
		return fmt.Errorf("record in the layout that the namespace is being resharded: %w", err)
	}
	return nil
}

// release has the old shards go on, if the process with a token copies them; "" is any.
func (c *copying) release(ctx context.Context, token string) error {
	for shard, tag := range c.from {
		of, err := c.Redis.Eval(ctx, releaseLua, []string{keyspace.ProgressKey(tag)}, token).Text()
		if err == nil && of != "" {
			changed := keyspace.ChangedKey(tag, of)
			err = c.Redis.Unlink(ctx, changed, taken(changed)).Err()
		}
		if err != nil {
			return fmt.Errorf("have shard %d go on: %w", shard, err)
		}
	}
	return nil
}

// freeze has nothing change the old shards any more.
func (c *copying) freeze(ctx context.Context) error {
	pipe := c.Redis.Pipeline()
	for _, tag := range c.from {
		pipe.Eval(ctx, freezeLua, []string{keyspace.ProgressKey(tag)}, c.token)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("freeze the shards: %w", err)
	}
	return nil
}

// finish gives the new shards the progress of the old ones, by which they are complete.
func (c *copying) finish(ctx context.Context) error {
	progress := make([][]any, len(c.from))
	for shard, tag := range c.from {
		fields, err := c.Redis.HGetAll(ctx, keyspace.ProgressKey(tag)).Result()
		if err != nil {
			return fmt.Errorf("read the progress of shard %d: %w", shard, err)
		}
		progress[shard] = []any{c.token}
		for name, value := range fields {
			if name != keyspace.FrozenField && name != keyspace.CopyingField {
				progress[shard] = append(progress[shard], name, value)
			}
		}
	}
	pipe := c.Redis.Pipeline()
	for _, shard := range slices.Sorted(maps.Keys(c.wanted)) {
		pipe.Eval(ctx, finishLua, []string{keyspace.ProgressKey(c.to[shard])}, progress[shard%len(c.from)]...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("write the progress of %d shards: %w", len(c.wanted), err)
	}
	return nil
}

// switchOver makes the new number of shards that of the namespace.
func (c *copying) switchOver(ctx context.Context) error {
	err := c.Redis.Eval(ctx, switchLua, []string{keyspace.LayoutKey(c.Namespace)}, c.token, len(c.to), len(c.from)).Err()
	if err == nil {
		return nil
	}
	if l, reading := c.Layout(ctx); reading == nil && l.Shards == len(c.to) {
		return nil // only the reply was lost
	}
	return fmt.Errorf("switch namespace %q to %d shards: %w", c.Namespace, len(c.to), err)
}

// incomplete is the number of new shards that do not have everything.
func (c *copying) incomplete(ctx context.Context) (n int, err error) {
	pipe := c.Redis.Pipeline()
	var replies []*redis.BoolCmd
	for _, tag := range c.to {
		replies = append(replies, pipe.HExists(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("read which shards are complete: %w", err)
	}
	for _, reply := range replies {
		if reply.Val() {
			n++
		}
	}
	return n, nil
}

// same is errReplaced where other servers answer than before, or the same were started again.
func (c *copying) same(ctx context.Context, before map[string]string) error {
	after, err := c.servers(ctx)
	if err == nil && !maps.Equal(before, after) {
		err = errReplaced
	}
	return err
}

// servers is, by shard's tag, which master has it: its address, its run and the history of its replication. The first says
// that it was not started again, the second that it has not taken another's place.
func (c *copying) servers(ctx context.Context) (map[string]string, error) {
	cluster, ok := c.Redis.(*redis.ClusterClient)
	if !ok {
		run, err := runOf(ctx, c.Redis)
		return map[string]string{"": run}, err
	}
	found, runs := map[string]string{}, map[string]string{}
	for _, tag := range slices.Concat(c.from, c.to) {
		master, err := cluster.MasterForKey(ctx, tag)
		if err != nil {
			return nil, fmt.Errorf("find the master of %s: %w", tag, err)
		}
		address := master.Options().Addr
		if runs[address] == "" {
			if runs[address], err = runOf(ctx, master); err != nil {
				return nil, err
			}
		}
		found[tag] = address + " " + runs[address]
	}
	return found, nil
}

// runOf identifies what a server has done since it was started, or took a master's place.
func runOf(ctx context.Context, server redis.Cmdable) (string, error) {
	info, err := server.Info(ctx).Result()
	if err != nil {
		return "", fmt.Errorf("ask a server who it is: %w", err)
	}
	var run strings.Builder
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && slices.Contains([]string{"run_id", "role", "master_replid"}, name) {
			run.WriteString(value + " ")
		}
	}
	return run.String(), nil
}
