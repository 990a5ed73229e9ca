// Package reshard spreads the state of a namespace over more shards.
//
// The new number is a multiple of the old one, so each new shard takes the keys of its entities and its progress from one old
// shard. While the keys are copied the old shards are frozen: the scripts that change a shard refuse
// to (keyspace.FrozenField). Questions go on. Each new shard is frozen until it has everything, so what a crash or a
// failover leaves half copied is never taken for whole. Then one transaction on the layout switches over. The old keys stay
// until they are deleted by a command of its own, once no process reads them any more.
package reshard

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Resharder reshards one namespace. Each step may be killed at any moment and run again.
type Resharder struct {
	Redis     redis.UniversalClient
	Namespace string
	// Report is called, from several goroutines, as keys are copied, compared or deleted: what is done, and to how many
	// keys more.
	Report func(doing string, keys int)
}

// Layout is the part of a namespace's layout that resharding changes.
type Layout struct {
	Shards int
	To     int // the number that the namespace is being spread over, 0 for none
	Old    int // the number before, whose keys were not deleted yet, 0 for none
}

// Layout reads the layout. The error says that Redis cannot be reached, or that there is no such namespace.
func (r *Resharder) Layout(ctx context.Context) (l Layout, err error) {
	fields, err := r.Redis.HGetAll(ctx, keyspace.LayoutKey(r.Namespace)).Result()
	if err != nil {
		return l, fmt.Errorf("read the layout of namespace %q: %w", r.Namespace, err)
	}
	if len(fields) == 0 {
		return l, fmt.Errorf("there is no namespace %q", r.Namespace)
	}
	for name, number := range map[string]*int{keyspace.ShardsField: &l.Shards, keyspace.ReshardingField: &l.To, keyspace.OldShardsField: &l.Old} {
		text, ok := fields[name]
		if !ok {
			continue
		}
		if *number, err = strconv.Atoi(text); err != nil || *number < 1 {
			return l, fmt.Errorf("the layout of namespace %q has %s %q", r.Namespace, name, text)
		}
	}
	if l.Shards == 0 {
		return l, fmt.Errorf("the layout of namespace %q does not say how many shards it has", r.Namespace)
	}
	return l, nil
}

// maxShards is the number of slots of a cluster.
const maxShards = 16384

// Check says why a namespace cannot be spread over a number of shards, nil where it can.
func (l Layout) Check(to int) error {
	switch {
	case l.Old > 0 && l.Shards == to:
		return nil // some of its shards may have been lost by a failover
	case l.Old > 0:
		return fmt.Errorf("the keys of the %d shards before have not been deleted: run weir reshard --delete-old first", l.Old)
	case l.To > 0 && l.To != to:
		return fmt.Errorf("the namespace is being spread over %d shards: go on with --to %[1]d, or run weir reshard --cancel", l.To)
	case to <= l.Shards || to > maxShards || to%l.Shards != 0:
		return fmt.Errorf("%d shards cannot be spread over %d: the new number is a multiple of the old one, up to %d", l.Shards, to, maxShards)
	}
	return nil
}

// Copy freezes the shards, and copies them to new ones. Where the namespace has that number of shards already, it copies again
// what a failover has lost of those.
func (r *Resharder) Copy(ctx context.Context, to int) error {
	l, err := r.Layout(ctx)
	if err == nil {
		err = l.Check(to)
	}
	if err != nil {
		return err
	}
	c := newCopying(r, l.Shards, to)
	if l.Old > 0 {
		c = newCopying(r, l.Old, to)
	} else if err := r.Redis.HSet(ctx, keyspace.LayoutKey(r.Namespace), keyspace.ReshardingField, to).Err(); err != nil {
		return fmt.Errorf("note in the layout that the namespace is resharded: %w", err)
	}
	return c.run(ctx, l.Old > 0)
}

// Switch makes the number of shards that the namespace was copied to its number of shards. Without such a copy it does nothing.
func (r *Resharder) Switch(ctx context.Context) error {
	l, err := r.Layout(ctx)
	if err != nil || l.To == 0 {
		return err
	}
	key := keyspace.LayoutKey(r.Namespace)
	_, err = r.Redis.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.HSet(ctx, key, keyspace.ShardsField, l.To, keyspace.OldShardsField, l.Shards)
		pipe.HDel(ctx, key, keyspace.ReshardingField)
		return nil
	})
	if err != nil {
		return fmt.Errorf("switch namespace %q to %d shards: %w", r.Namespace, l.To, err)
	}
	return nil
}

// ErrNotResharding says that there is nothing to cancel.
var ErrNotResharding = errors.New("the namespace is not being resharded")

// Cancel deletes what was copied, and has the old shards go on.
func (r *Resharder) Cancel(ctx context.Context) error {
	l, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	if l.To == 0 {
		return ErrNotResharding
	}
	if err := r.deleteShards(ctx, l.To); err != nil {
		return err
	}
	for _, tag := range tags(r.Namespace, l.Shards) {
		if err := r.Redis.HDel(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField).Err(); err != nil {
			return fmt.Errorf("unfreeze %s: %w", tag, err)
		}
	}
	return r.forget(ctx, keyspace.ReshardingField)
}

// ErrNoOldShards says that there is nothing to delete.
var ErrNoOldShards = errors.New("the namespace has no keys of an earlier number of shards")

// DeleteOld deletes the keys of the shards before.
func (r *Resharder) DeleteOld(ctx context.Context) error {
	l, err := r.Layout(ctx)
	if err != nil {
		return err
	}
	if l.Old == 0 {
		return ErrNoOldShards
	}
	frozen, err := newCopying(r, l.Old, l.Shards).frozen(ctx)
	if err != nil {
		return err
	}
	if len(frozen) > 0 {
		return fmt.Errorf("%d of %d shards lack keys, which a failover has lost: run weir reshard --to %[2]d first", len(frozen), l.Shards)
	}
	if err := r.deleteShards(ctx, l.Old); err != nil {
		return err
	}
	return r.forget(ctx, keyspace.OldShardsField)
}

func (r *Resharder) forget(ctx context.Context, field string) error {
	if err := r.Redis.HDel(ctx, keyspace.LayoutKey(r.Namespace), field).Err(); err != nil {
		return fmt.Errorf("note in the layout that it is done: %w", err)
	}
	return nil
}

// deleteShards deletes all keys of the shards of a number of them.
func (r *Resharder) deleteShards(ctx context.Context, shards int) error {
	known := map[string]bool{}
	for _, tag := range tags(r.Namespace, shards) {
		known[tag] = true
	}
	err := r.walk(ctx, func(ctx context.Context, keys []string) error {
		var gone []string
		for _, key := range keys {
			if known[keyspace.Tag(key)] {
				gone = append(gone, key)
			}
		}
		if len(gone) == 0 {
			return nil
		}
		pipe := r.Redis.Pipeline()
		for _, key := range gone {
			pipe.Unlink(ctx, key)
		}
		_, err := pipe.Exec(ctx)
		r.Report("deleted", len(gone))
		return err
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
