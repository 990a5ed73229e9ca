package redisstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// After the switch of a resharding, a failover to a replica that lacks what was copied leaves new shards that are frozen,
// and not being copied: they lack keys. Such shards are halted: like those of a master that does not answer they lag and
// are not answered from, while the others go on. A frozen shard that is being copied only waits for the switch.

// haltedError is the error for shards that lack keys. It is a state.ErrUnavailable.
type haltedError struct{ lacking, shards int }

func (e *haltedError) Error() string {
	return fmt.Sprintf("%d of %d state shards lack keys, which a failover has lost while they were copied: run weir reshard --to %[2]d --yes", e.lacking, e.shards)
}

func (*haltedError) Unwrap() error { return state.ErrUnavailable }

// Degraded reports whether questions about entities of other shards can be answered.
func (e *haltedError) Degraded() bool { return e.lacking < e.shards }

// halted are the shards that lack keys.
type halted struct {
	shards []bool
	err    *haltedError
}

// noteHalted notes which shards lack keys: none if there is none.
func (s *Store) noteHalted(shards []bool) *halted {
	lacking := 0
	for _, lacks := range shards {
		if lacks {
			lacking++
		}
	}
	if lacking == 0 {
		s.halted.Store(nil)
		return nil
	}
	h := &halted{shards, &haltedError{lacking, len(shards)}}
	s.halted.Store(h)
	return h
}

// findHalted finds the shards that lack keys, as far as their masters answer; nil if none does.
func (s *Store) findHalted(ctx context.Context) *halted {
	replies := askShards(ctx, s, s.masters.question, func(key string) *redis.SliceCmd {
		return redis.NewSliceCmd(ctx, "hmget", key, keyspace.FrozenField, keyspace.CopyingField)
	})
	shards := make([]bool, len(s.tags))
	for shard, reply := range replies {
		fields := reply.Val()
		shards[shard] = len(fields) == 2 && fields[0] != nil && fields[1] == nil
	}
	return s.noteHalted(shards)
}

// freezeLost empties and freezes the shards without progress whose keys the shards before a resharding still have: their servers
// went back to before it. What fails is tried again.
func (s *Store) freezeLost(ctx context.Context) {
	if !s.resharded.Load() {
		return
	}
	var lost []int
	replies := askShards(ctx, s, s.masters.question, func(key string) *redis.SliceCmd {
		return redis.NewSliceCmd(ctx, "hmget", key, keyspace.FormatField, keyspace.FrozenField, keyspace.CopyingField, keyspace.AnewField)
	})
	for shard, reply := range replies {
		if fields, err := reply.Result(); err == nil && !slices.ContainsFunc(fields, func(field any) bool { return field != nil }) {
			lost = append(lost, shard)
		}
	}
	if len(lost) > 0 && s.empty(ctx, lost) == nil {
		s.findHalted(ctx)
	}
}

// refuseHalted finds the shards that lack keys among the records of all shards, which then have an error.
func (s *Store) refuseHalted(found []protocol.Found) {
	shards := make([]bool, len(s.tags))
	for shard, f := range found {
		shards[shard] = f.Fields[keyspace.FrozenField] != "" && f.Fields[keyspace.CopyingField] == ""
	}
	lacking := s.noteHalted(shards)
	for shard := range found {
		if err := lacking.at(shard); err != nil {
			found[shard].Err = err
		}
	}
}

// at returns the error of a shard that lacks keys, nil for any other.
func (h *halted) at(shard int) error {
	if h != nil && h.shards[shard] {
		return h.err
	}
	return nil
}

// Unfinished returns what is left of a resharding: the number of shards that the namespace is being spread over, 0 if it
// is not, and how many of its shards lack keys, as far as their masters answer.
func (s *Store) Unfinished(ctx context.Context) (to, lacking int, err error) {
	if err := s.CheckLayout(ctx); err != nil {
		return 0, 0, err
	}
	if h := s.findHalted(ctx); h != nil {
		lacking = h.err.lacking
	}
	return int(s.resharding.Load()), lacking, nil
}
