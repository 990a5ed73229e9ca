package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed empty.lua
var emptyLua string

// A shard gets its first position when it has no state keys: from then on, state and progress change together. A shard that has
// lost its progress may still have state keys, of records that are unknown and will be applied again. So it is emptied first.
//
// After a resharding, until its old keys are deleted, these have what the log may no longer have. So a new shard whose server has
// gone back to before it is frozen as one that is half copied is: weir reshard copies it again.

// NoteEmptied calls a function with the number of state keys that were deleted because their shards had lost their progress.
func NoteEmptied(note func(keys int64)) Option {
	return func(s *Store) { s.noteEmptied = note }
}

// emptiedAtOnce is how many keys a step of emptying looks at: it takes a server about a millisecond.
const emptiedAtOnce = 500

// empty empties those of some shards that have not begun, which begin then. A walk over the keys of a single server finds those of
// all of its shards.
func (s *Store) empty(ctx context.Context, shards []int) error {
	at := emptying{place: "0", mark: "begun"}
	var err error
	if at.records, err = s.records(ctx); err != nil {
		return err
	}
	switch layout, err := s.storedLayout(ctx); {
	case errors.Is(err, state.ErrUnavailable): // what was last known of it stands: should shards be frozen without need, they begin anew later
		if s.resharded.Load() {
			at.mark = keyspace.FrozenField
		}
	case err != nil:
		return err
	case layout[keyspace.OldShardsField] != "":
		at.mark = keyspace.FrozenField
	}
	if s.masters.cluster == nil {
		var keys []string
		for _, tag := range s.tags {
			keys = append(keys, keyspace.ProgressKey(tag))
		}
		return s.emptyBy(ctx, at, 0, "", keys...)
	}
	for _, shard := range shards {
		tag := s.tags[shard]
		slot := keyspace.SlotOf(strings.Trim(tag, "{}"))
		if err := s.emptyBy(ctx, at, shard, strconv.Itoa(slot), keyspace.ProgressKey(tag), tag+"none"); err != nil {
			return err
		}
	}
	return nil
}

// emptyBy calls the script, at the master of a shard, until all shards whose progress is among the keys have begun.
func (s *Store) emptyBy(ctx context.Context, at emptying, shard int, slot string, keys ...string) error {
	deleted := int64(0)
	defer func() {
		if deleted > 0 {
			s.noteEmptied(deleted)
		}
	}()
	for !at.over {
		var err error
		if at, err = s.emptyStep(ctx, shard, slot, keys, at, emptiedAtOnce); err != nil {
			return fmt.Errorf("empty shards that have no progress: %w", err)
		}
		deleted += at.deleted
	}
	return nil
}

// emptying is what a step of emptying shards has returned, and what the shards record as they begin; see empty.lua.
type emptying struct {
	over        bool
	walk, place string
	deleted     int64
	mark        string
	records     []any
}

func (s *Store) emptyStep(ctx context.Context, shard int, slot string, keys []string, at emptying, count int) (emptying, error) {
	args := []any{"eval", serverLua + emptyLua, len(keys)}
	for _, key := range keys {
		args = append(args, key)
	}
	args = append(args, slot, count, keyspace.Pattern(s.namespace), at.walk, at.place, at.mark)
	step := redis.NewSliceCmd(ctx, append(args, at.records...)...)
	step.SetFirstKeyPos(3)
	s.send(ctx, s.masters.write, []redis.Cmder{step}, func(int) int { return shard })
	reply, err := step.Result()
	if err != nil {
		return at, err
	}
	if len(reply) != 4 {
		return at, errReply
	}
	over, known := reply[0].(int64)
	at.walk, _ = reply[1].(string)
	at.place, _ = reply[2].(string)
	at.deleted, _ = reply[3].(int64)
	if at.over = over == 1; !known {
		return at, errReply
	}
	return at, nil
}
