package reshard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// copying copies the shards of a namespace to a multiple of their number.
type copying struct {
	*Resharder
	token    string            // of this attempt; see scripts.go
	takers   map[string]string // the tokens of those that took the shards before, by tag
	from, to []string          // tags
	shards   map[string]int    // the numbers of from, by tag
	wanted   map[int]bool      // the new shards to be copied
	progress [][]any           // what finish writes, by old shard
}

func newCopying(r *Resharder, from, to int, token string) *copying {
	c := &copying{
		Resharder: r, token: token, takers: map[string]string{}, from: tags(r.Namespace, from), to: tags(r.Namespace, to),
		shards: map[string]int{}, wanted: map[int]bool{},
	}
	for shard, tag := range c.from {
		c.shards[tag] = shard
	}
	return c
}

// errReplaced is returned if the copies, or their originals, may have gone back in time.
var errReplaced = errors.New("a Redis server was restarted or replaced while keys were copied: run it again")

// spread copies all shards while they are in use, and switches over. If it fails, they are used as before.
func (c *copying) spread(ctx context.Context) (err error) {
	if err := c.Await(ctx); err != nil {
		return err
	}
	before, err := c.servers(ctx)
	if err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = c.release(ending) // if this fails, too, events wait for another run
		}
	}()
	// A replica that has the frozen new shards, and is then cut off, knows later that they lack keys.
	for _, step := range []func(context.Context) error{
		c.Await, c.copyAll, c.catchUp, c.Await,
		// From here on, events wait.
		c.freeze, c.copyLast, c.Await, c.readProgress, func(ctx context.Context) error { return c.same(ctx, before) }, c.finish, c.switchOver,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// mend copies again the new shards that a failover has left incomplete. The old ones have been frozen since the switch.
func (c *copying) mend(ctx context.Context) error {
	before, err := c.servers(ctx)
	if err != nil {
		return err
	}
	for shard, tag := range c.to {
		lacks, err := c.Redis.Eval(ctx, reserveLua, []string{keyspace.ProgressKey(tag)}, c.token, len(c.to)).Bool()
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
		c.copyAll, c.Await, c.readProgress, func(ctx context.Context) error { return c.same(ctx, before) }, c.finish,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin takes all shards, and makes all processes record which keys of the old ones they change.
func (c *copying) begin(ctx context.Context) error {
	for shard := range c.to {
		c.wanted[shard] = true
	}
	if err := c.take(ctx); err != nil {
		return err
	}
	return c.mark(ctx, c.from, keyspace.CopyingField)
}

// take makes this process the one that reshards the namespace, freezes the new shards, and undoes what an earlier attempt
// has left. The layout does not know of that if its server has gone back in time since.
func (c *copying) take(ctx context.Context) error {
	if err := c.readTakers(ctx); err != nil {
		return err
	}
	if err := c.claim(ctx); err != nil {
		return err
	}
	// First the old shards, which remember that an attempt was cancelled: then the new ones stay as they are.
	if err := c.mark(ctx, c.from, keyspace.ResharderField); err != nil {
		return err
	}
	if err := c.mark(ctx, c.to, keyspace.FrozenField); err != nil {
		return err
	}
	if err := c.isClaimed(ctx); err != nil {
		return err
	}
	if err := c.release(ctx); err != nil {
		return err
	}
	return c.deleteStates(ctx, len(c.to), c.token)
}

// isClaimed fails if another process has claimed the layout since this one did, though it may have taken no shard.
func (c *copying) isClaimed(ctx context.Context) error {
	token, err := c.Redis.HGet(ctx, keyspace.LayoutKey(c.Namespace), keyspace.ResharderField).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("read which process reshards namespace %q: %w", c.Namespace, err)
	}
	if token != c.token {
		return fmt.Errorf("reshard namespace %q: another weir reshard has begun", c.Namespace)
	}
	return nil
}

// readTakers reads which processes took the shards last.
func (c *copying) readTakers(ctx context.Context) error {
	pipe := c.Redis.Pipeline()
	replies := map[string]*redis.StringCmd{}
	for _, tag := range slices.Concat(c.from, c.to) {
		replies[tag] = pipe.HGet(ctx, keyspace.ProgressKey(tag), keyspace.ResharderField)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for tag, reply := range replies {
		if err := reply.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("read which process has copied the shards before: %w", err)
		}
		c.takers[tag] = reply.Val()
	}
	return nil
}

// mark writes the token into a field of the progress of shards, unless another process has taken them meanwhile.
func (c *copying) mark(ctx context.Context, tags []string, field string) error {
	pipe := c.Redis.Pipeline()
	for _, tag := range tags {
		pipe.Eval(ctx, markLua, []string{keyspace.ProgressKey(tag)}, c.takers[tag], c.token, field)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("record in the shards that they are being copied: %w", err)
	}
	return nil
}

// claim makes this process the one that reshards the namespace.
func (c *copying) claim(ctx context.Context) error {
	err := c.Redis.Eval(ctx, beginLua, []string{keyspace.LayoutKey(c.Namespace)}, c.token, len(c.to), len(c.from)).Err()
	if err != nil {
		return fmt.Errorf("record in the layout that the namespace is being resharded: %w", err)
	}
	return nil
}

// release unfreezes the old shards, unless another process has taken them.
func (c *copying) release(ctx context.Context) error {
	for shard, tag := range c.from {
		of, err := c.Redis.Eval(ctx, releaseLua, []string{keyspace.ProgressKey(tag)}, c.token).Text()
		if err == nil && of != "" {
			changed := keyspace.ChangedKey(tag, of)
			err = c.Redis.Unlink(ctx, changed, taken(changed)).Err()
		}
		if err != nil {
			return fmt.Errorf("unfreeze shard %d: %w", shard, err)
		}
	}
	return nil
}

// freeze makes all scripts refuse to change the old shards.
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

// ofBegun matches a field that only the progress of a shard has that has begun, as empty.lua of redisstore does.
var ofBegun = regexp.MustCompile(`^(begun|[^:]+/\d+|fill:.+/\d+)$`)

// readProgress reads the progress of the old shards. It must be that of the servers whose keys were copied: compare them
// afterwards, see same.
func (c *copying) readProgress(ctx context.Context) error {
	c.progress = make([][]any, len(c.from))
	for shard, tag := range c.from {
		fields, err := c.Redis.HGetAll(ctx, keyspace.ProgressKey(tag)).Result()
		if err != nil {
			return fmt.Errorf("read the progress of shard %d: %w", shard, err)
		}
		c.progress[shard] = []any{c.token, keyspace.ResharderField, c.token}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(fields)), ofBegun.MatchString) {
			c.progress[shard] = append(c.progress[shard], keyspace.AnewField, "1")
			continue
		}
		for name, value := range fields {
			if !slices.Contains([]string{keyspace.FrozenField, keyspace.CopyingField, keyspace.ShardsField, keyspace.ResharderField}, name) {
				c.progress[shard] = append(c.progress[shard], name, value)
			}
		}
		c.progress[shard] = append(c.progress[shard], keyspace.ShardsField, len(c.to))
	}
	return nil
}

// finish gives the new shards the progress of the old ones, which completes them.
func (c *copying) finish(ctx context.Context) error {
	pipe := c.Redis.Pipeline()
	for _, shard := range slices.Sorted(maps.Keys(c.wanted)) {
		pipe.Eval(ctx, finishLua, []string{keyspace.ProgressKey(c.to[shard])}, c.progress[shard%len(c.from)]...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("write the progress of %d shards: %w", len(c.wanted), err)
	}
	return nil
}

// switchOver makes the new number of shards the namespace's number.
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

// name records in the old shards the layout of those that took over from them, all of it: some may never have begun.
// Processes follow it if the server of the layout loses the switch, or the layout; see redisstore.Store.Adopt.
func (c *copying) name(ctx context.Context, l Layout) error {
	fields := l.recorded(len(c.to))
	pipe := c.Redis.Pipeline()
	for _, tag := range c.from {
		pipe.Eval(ctx, nameLua, []string{keyspace.ProgressKey(tag)}, fields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("namespace %q has %d shards, but the old ones do not say so yet: run this again: %w", c.Namespace, len(c.to), err)
	}
	return nil
}

// incomplete returns how many new shards are not complete, and how many have no progress: their servers went back to before the
// resharding, and no processor has noticed it yet.
func (c *copying) incomplete(ctx context.Context) (lacking, lost int, err error) {
	pipe := c.Redis.Pipeline()
	var held []*redis.SliceCmd
	for _, tag := range c.to {
		held = append(held, pipe.HMGet(ctx, keyspace.ProgressKey(tag), keyspace.FormatField, keyspace.AnewField, keyspace.FrozenField, keyspace.CopyingField))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, 0, fmt.Errorf("read which shards are complete: %w", err)
	}
	for _, of := range held {
		switch format, anew, frozen, copying := of.Val()[0], of.Val()[1], of.Val()[2], of.Val()[3]; {
		case frozen != nil || copying != nil:
			lacking++
		case format == nil && anew == nil: // other fields may have been written since
			lost++
		}
	}
	return lacking, lost, nil
}

// same returns errReplaced if other servers answer than before, or if a server was restarted.
func (c *copying) same(ctx context.Context, before map[string]string) error {
	after, err := c.servers(ctx)
	if err == nil && !maps.Equal(before, after) {
		err = errReplaced
	}
	return err
}

// servers returns, by shard's tag, the address of its master, its run ID and its replication ID. The run ID changes
// when the server restarts, the replication ID when a replica replaces the master.
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

// runOf returns the run ID and the replication ID of a server.
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
