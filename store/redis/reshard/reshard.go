// Package reshard spreads the state of a namespace over more shards while it is in use.
//
// The new number is a multiple of the old one, so each new shard takes the keys of its entities and its progress from
// one old shard. While the keys are copied, the scripts that change a shard record which keys they change
// (keyspace.CopyingField). These are copied again, until few are left. Then the old shards are frozen
// (keyspace.FrozenField) for as long as it takes to copy those few: the new shards get the progress, and one
// transaction on the layout switches over. Processes that use the namespace continue with the new shards, see
// redisstore.Namespace. Each new shard is frozen until it is complete, so a shard that a crash or a failover leaves
// half copied is never taken for complete. A separate command deletes the old keys, once no process reads them any
// more.
package reshard

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Resharder reshards one namespace. Each step may be killed at any moment and repeated.
type Resharder struct {
	Redis     redis.UniversalClient
	Namespace string
	// Report is called, from several goroutines, as keys are copied, compared or deleted: with what was done, and to
	// how many further keys.
	Report func(doing string, keys int)
	// Grace is how long the old keys stay after the switch: questions that began before it read them.
	Grace time.Duration
	// Await waits until all known replicas have what was written so far. It fails if that takes too long.
	Await func(ctx context.Context) error
}

// Layout is the part of a namespace's layout that resharding changes.
type Layout struct {
	Shards int
	To     int // the number that the namespace is being spread over; 0 if it is not
	Old    int // the number before the switch, whose keys are not yet deleted; 0 if there is none
	// Incomplete is how many of the present shards lack keys.
	Incomplete int

	fields map[string]string
}

// recorded returns what shards record of the layout, with a number of shards: fields, each with its value.
func (l Layout) recorded(shards int) (fields []any) {
	for _, name := range keyspace.LayoutFields {
		value := l.fields[name]
		if name == keyspace.ShardsField {
			value = strconv.Itoa(shards)
		}
		fields = append(fields, name, value)
	}
	return fields
}

// Layout reads the layout. It fails if Redis cannot be reached, or if there is no such namespace.
func (r *Resharder) Layout(ctx context.Context) (l Layout, err error) {
	fields, err := r.Redis.HGetAll(ctx, keyspace.LayoutKey(r.Namespace)).Result()
	l.fields = fields
	if err != nil {
		return l, fmt.Errorf("read the layout of namespace %q: %w", r.Namespace, err)
	}
	if len(fields) == 0 {
		return l, fmt.Errorf("there is no layout of namespace %q: if it was there, start a processor, which finds it in the shards and writes it again", r.Namespace)
	}
	for name, number := range map[string]*int{keyspace.ShardsField: &l.Shards, keyspace.ReshardingField: &l.To, keyspace.OldShardsField: &l.Old} {
		text, ok := fields[name]
		if !ok {
			continue
		}
		if *number = keyspace.ParseShards(text); *number == 0 {
			return l, fmt.Errorf("the layout of namespace %q has %s %q", r.Namespace, name, text)
		}
	}
	if l.Shards == 0 {
		return l, fmt.Errorf("the layout of namespace %q does not say how many shards it has", r.Namespace)
	}
	l.Incomplete, err = r.current(ctx, l.Shards)
	return l, err
}

// current returns an error if other shards took over from those that the layout names: its server has gone back in time.
// Any of them says so, because the others may have gone back with it. It also counts incomplete shards: frozen ones that
// are not being copied.
func (r *Resharder) current(ctx context.Context, shards int) (incomplete int, err error) {
	pipe := r.Redis.Pipeline()
	replies := make([]*redis.SliceCmd, shards)
	for shard, tag := range tags(r.Namespace, shards) {
		replies[shard] = pipe.HMGet(ctx, keyspace.ProgressKey(tag), keyspace.ShardsField, keyspace.FrozenField, keyspace.CopyingField)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for _, reply := range replies {
		fields, err := reply.Result()
		if err != nil {
			return 0, fmt.Errorf("read whether other shards took over from the %d of namespace %q: %w", shards, r.Namespace, err)
		}
		text, _ := fields[0].(string)
		if successors := keyspace.ParseShards(text); successors > shards {
			return 0, fmt.Errorf("namespace %q has %d shards, but its layout says %d, because its server has gone back in time: "+
				"start a processor, which corrects it", r.Namespace, successors, shards)
		}
		if fields[1] != nil && fields[2] == nil {
			incomplete++
		}
	}
	return incomplete, nil
}

// Check returns why a namespace cannot be spread over a number of shards, or nil if it can.
func (l Layout) Check(to int) error {
	switch {
	case l.Old > 0 && l.Shards == to, l.Forsaken(to):
		return nil // some of its shards may have been lost by a failover
	case l.Incomplete > 0 && l.To == 0:
		return fmt.Errorf("%d of %d shards lack keys, which a failover has lost: run weir reshard --to %[2]d --yes first", l.Incomplete, l.Shards)
	case l.Old > 0:
		return fmt.Errorf("the keys of the %d old shards have not been deleted: run weir reshard --delete-old first", l.Old)
	case l.To > 0 && l.To != to:
		return fmt.Errorf("the namespace is being spread over %d shards: go on with --to %[1]d, or run weir reshard --cancel", l.To)
	case to <= l.Shards || to > keyspace.Slots || to%l.Shards != 0:
		return fmt.Errorf("%d shards cannot be spread over %d: the new number is a multiple of the old one, up to %d", l.Shards, to, keyspace.Slots)
	}
	return nil
}

// attempts is how often copying starts over because a server was restarted or replaced meanwhile.
const attempts = 5

// Forsaken reports whether a number of shards is the present one, and some of them are incomplete, though the keys that
// they lack were deleted: their server went back to a moment within the resharding.
func (l Layout) Forsaken(to int) bool {
	return l.Old == 0 && l.To == 0 && l.Shards == to && l.Incomplete > 0
}

// Spread copies the namespace to a number of shards, and switches over. If the namespace already has that number of
// shards, it copies again the shards that a failover has left incomplete; if there is nothing to copy, processors empty
// them and read them again from the log. If it fails, the namespace continues with its present shards.
func (r *Resharder) Spread(ctx context.Context, to int) error {
	for attempt := 1; ; attempt++ {
		l, err := r.Layout(ctx)
		if err == nil {
			err = l.Check(to)
		}
		if err != nil {
			return err
		}
		if l.Forsaken(to) {
			return r.restart(ctx, to)
		}
		c := newCopying(r, cmp.Or(l.Old, l.Shards), to, rand.Text())
		if l.Old > 0 {
			err = c.mend(ctx)
		} else {
			err = c.spread(ctx)
		}
		if err == nil {
			err = c.name(ctx, l)
		}
		if !errors.Is(err, errReplaced) || attempt == attempts {
			return err
		}
		r.Report("began again: a server of Redis was restarted or replaced; copied", 0)
	}
}

// restart has incomplete shards begin anew: without progress, they are emptied and read from the log; see empty.lua of
// redisstore.
func (r *Resharder) restart(ctx context.Context, shards int) error {
	for shard, tag := range tags(r.Namespace, shards) {
		if err := r.Redis.Eval(ctx, restartLua, []string{keyspace.ProgressKey(tag)}, shards).Err(); err != nil {
			return fmt.Errorf("have shard %d begin anew: %w", shard, err)
		}
	}
	return nil
}

// Cancel deletes what was copied, and has the old shards go on.
func (r *Resharder) Cancel(ctx context.Context) error {
	l, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	if l.To == 0 {
		return errors.New("the namespace is not being resharded")
	}
	// A process that still copies must neither write to the shards that are deleted here nor switch over to them.
	c := newCopying(r, l.Shards, l.To, rand.Text())
	if err := c.take(ctx); err != nil {
		return err
	}
	pipe := r.Redis.Pipeline()
	for _, tag := range c.to {
		progress := keyspace.ProgressKey(tag)
		pipe.Eval(ctx, deleteLua, []string{progress, progress}, c.token)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("delete the progress of %d shards: %w", l.To, err)
	}
	return r.forget(ctx, c.token, keyspace.ResharderField, keyspace.ReshardingField)
}

// ErrNoOld is the error for a namespace without keys of an earlier number of shards, perhaps since they were deleted.
var ErrNoOld = errors.New("the namespace has no keys of an earlier number of shards")

// DeleteOld deletes the keys of the shards before. Their progress stays frozen, with the number of shards that took over
// and with what the shards record of the layout; see copying.name.
func (r *Resharder) DeleteOld(ctx context.Context) error {
	l, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	if l.Old == 0 {
		return ErrNoOld
	}
	if err := r.awaitGrace(ctx); err != nil {
		return err
	}
	if err := r.Await(ctx); err != nil {
		return err
	}
	// Last: a failover may lose keys as long as replicas lack some.
	lacking, lost, err := newCopying(r, l.Old, l.Shards, "").incomplete(ctx)
	if err != nil {
		return err
	}
	if lost > 0 {
		return fmt.Errorf("%d of %d shards have no progress: start a processor, and do what it says of them first", lost, l.Shards)
	}
	if lacking > 0 {
		return fmt.Errorf("%d of %d shards lack keys, which a failover has lost: run weir reshard --to %[2]d --yes first", lacking, l.Shards)
	}
	if err := r.retire(ctx, l); err != nil {
		return err
	}
	if err := r.deleteStates(ctx, l.Old, retired); err != nil {
		return err
	}
	return r.forget(ctx, strconv.Itoa(l.Old), keyspace.OldShardsField, keyspace.SwitchedField)
}

// retired is what old shards are frozen by whose keys are deleted.
const retired = "resharded"

// retire leaves in the progress of the old shards only what took over from them. It fails if the layout is no longer the
// one that was read before: its server may lose it, or go back in time to before the switch, at any moment.
func (r *Resharder) retire(ctx context.Context, l Layout) error {
	layout, err := r.Redis.HGetAll(ctx, keyspace.LayoutKey(r.Namespace)).Result()
	if err != nil {
		return fmt.Errorf("read the layout of namespace %q: %w", r.Namespace, err)
	}
	if layout[keyspace.ShardsField] != strconv.Itoa(l.Shards) || layout[keyspace.OldShardsField] != strconv.Itoa(l.Old) {
		return fmt.Errorf("the layout of namespace %q has changed meanwhile, so nothing was deleted: run this again", r.Namespace)
	}
	fields := append(l.recorded(l.Shards), keyspace.FrozenField, retired)
	for shard, tag := range tags(r.Namespace, l.Old) {
		if err := r.Redis.Eval(ctx, retireLua, []string{keyspace.ProgressKey(tag)}, fields...).Err(); err != nil {
			return fmt.Errorf("record in old shard %d which ones took over: %w", shard, err)
		}
	}
	return nil
}

// awaitGrace waits until Grace has passed since the switch.
func (r *Resharder) awaitGrace(ctx context.Context) error {
	switched, err := r.Redis.HGet(ctx, keyspace.LayoutKey(r.Namespace), keyspace.SwitchedField).Int64()
	if err != nil {
		return fmt.Errorf("read when namespace %q was switched over: %w", r.Namespace, err)
	}
	now, err := r.Redis.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read the clock of Redis: %w", err)
	}
	return sleep(ctx, time.Unix(switched, 0).Add(r.Grace).Sub(now))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// forget deletes fields of the layout, unless the first one has another value by now.
func (r *Resharder) forget(ctx context.Context, value string, fields ...any) error {
	args := append([]any{value}, fields...)
	if err := r.Redis.Eval(ctx, forgetLua, []string{keyspace.LayoutKey(r.Namespace)}, args...).Err(); err != nil {
		return fmt.Errorf("record in the layout that it is done: %w", err)
	}
	return nil
}

// deleteStates deletes all keys of a number of shards but their progress, which says what they are frozen by.
func (r *Resharder) deleteStates(ctx context.Context, shards int, frozenBy string) error {
	known := map[string]bool{}
	for _, tag := range tags(r.Namespace, shards) {
		known[tag] = true
	}
	err := r.walk(ctx, func(ctx context.Context, keys []string) error {
		gone, number := map[string][]string{}, 0 // by progress
		for _, key := range keys {
			if tag := keyspace.Tag(key); known[tag] && key != keyspace.ProgressKey(tag) {
				gone[keyspace.ProgressKey(tag)] = append(gone[keyspace.ProgressKey(tag)], key)
				number++
			}
		}
		if number == 0 {
			return nil
		}
		began := time.Now()
		pipe := r.Redis.Pipeline()
		for progress, keys := range gone {
			pipe.Eval(ctx, deleteLua, append([]string{progress}, keys...), frozenBy)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		r.Report("deleted", number)
		// Leave at least half of Redis' time to events and questions.
		return sleep(ctx, time.Since(began))
	})
	if err != nil {
		return fmt.Errorf("delete the keys of %d shards: %w", shards, err)
	}
	return nil
}

func tags(namespace string, shards int) []string {
	list := make([]string, shards)
	for i := range list {
		list[i] = keyspace.ShardTag(namespace, i, shards)
	}
	return list
}
