package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// callPartitions is the most partitions that one call changes: it blocks others for a few milliseconds at most.
const callPartitions = 500

// maxRefusals is how often the records of many partitions together may change while they are claimed. After that each is claimed
// by itself, so that the claim succeeds while another plan applies records of all of them.
const maxRefusals = 3

// Claim takes partitions for a plan. It returns one claim for each partition. Shards whose master does not answer, or is another
// than the claimant has seen, while others can be claimed are missing in the claims.
func (s *Store) Claim(ctx context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error) {
	claims := make([]state.Claim, len(partitions))
	for i := range claims {
		claims[i].Progress = make([]state.Position, len(s.tags))
		claims[i].OwnedMs = math.MaxInt64
	}
	if len(partitions) == 0 {
		return claims, nil
	}
	claimant := s.claimant(by)
	claimed := make([]int, len(s.tags)) // number of partitions, by shard
	c := change{
		shards: s.allShards(),
		run:    func(shard int) string { return s.serverSeen(by.Seen, shard) },
		decide: func(shard int, r *progress.Record, before int) (func() bool, error) {
			first, most := claimed[shard], callPartitions
			if before > maxRefusals {
				most = 1
			}
			some := r.Claim(partitions[first:min(first+most, len(partitions))], claimant)
			return func() bool {
				for i := range some {
					some[i].AddTo(&claims[first+i], shard)
				}
				claimed[shard] += len(some)
				return claimed[shard] < len(partitions)
			}, nil
		},
		missing: func(shard int, err error) {
			for i := range claims {
				claims[i].Miss(shard, err)
			}
		},
	}
	if err := c.make(ctx, s); err != nil {
		return nil, fmt.Errorf("claim %d partitions: %w", len(partitions), err)
	}
	return claims, nil
}

// claimant returns the claimant of a plan, with what was known when the plan was registered.
func (s *Store) claimant(by state.Claimant) *progress.Claimant {
	if known, registered := s.claimants.Load(by.Version); registered {
		return known.(*progress.Claimant).GivingWayTo(by.GivesWayTo)
	}
	return progress.NewClaimant(by.Version, by.GivesWayTo, &state.Known{})
}

// Progress reads each partition's position in each shard under any plan, with one pipeline, and a
// second one if a partition is not under the plan that it is named with.
func (s *Store) Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error) {
	all := make([][]state.Position, len(partitions))
	for i := range all {
		all[i] = make([]state.Position, len(s.tags))
	}
	err := s.positions(ctx, s.allShards(), partitions, func(partition, shard int, at state.Position) { all[partition][shard] = at })
	if err != nil {
		return nil, fmt.Errorf("read the progress of %d partitions: %w", len(partitions), err)
	}
	return all, nil
}

// askShards sends a command about the progress of each shard to its master. It returns the commands with their replies,
// by shard.
func askShards[C redis.Cmder](ctx context.Context, s *Store, within time.Duration, about func(progress string) C) []C {
	asked, commands := make([]C, len(s.tags)), make([]redis.Cmder, len(s.tags))
	for shard, tag := range s.tags {
		asked[shard] = about(keyspace.ProgressKey(tag))
		commands[shard] = asked[shard]
	}
	s.send(ctx, within, commands, func(shard int) int { return shard })
	return asked
}

// allShards returns the numbers of all shards.
func (s *Store) allShards() []int {
	shards := make([]int, len(s.tags))
	for shard := range shards {
		shards[shard] = shard
	}
	return shards
}

// positions reads the positions of partitions in some shards.
func (s *Store) positions(ctx context.Context, shards []int, partitions []state.Partition,
	take func(partition, shard int, at state.Position),
) error {
	if len(partitions) == 0 || len(shards) == 0 {
		return nil
	}
	args := []any{"hmget", ""}
	for _, p := range partitions {
		args = append(args, progress.PositionField(p))
	}
	replies, commands := make([]*redis.SliceCmd, len(shards)), make([]redis.Cmder, len(shards))
	for i, shard := range shards {
		args[1] = keyspace.ProgressKey(s.tags[shard])
		replies[i] = redis.NewSliceCmd(ctx, slices.Clone(args)...)
		commands[i] = replies[i]
	}
	s.send(ctx, s.masters.write, commands, func(i int) int { return shards[i] })
	lacking := map[int][]int{} // partitions that another plan has, or none, by shard
	for n, shard := range shards {
		if err := replies[n].Err(); err != nil {
			return err
		}
		for i, held := range replies[n].Val() {
			at, err := parsePosition(held)
			if err != nil {
				return fmt.Errorf("%s: %w", keyspace.ProgressKey(s.tags[shard]), err)
			}
			if !at.Exists() {
				lacking[shard] = append(lacking[shard], i)
			}
			take(i, shard, at)
		}
	}
	others := slices.Collect(maps.Keys(lacking))
	records, errs := s.readRecords(ctx, s.masters.write, others)
	for n, shard := range others {
		if errs[n] != nil {
			return errs[n]
		}
		for _, i := range lacking[shard] {
			take(i, shard, records[n].Position(partitions[i]))
		}
	}
	return nil
}

// Applied reports whether the record at an offset of a partition is applied in all shards of the reads, or in all
// shards if there are no reads. The partition is named with a plan; if that plan does not have it, any plan counts. It
// writes nothing, and takes one round trip if the plan has the partition. In a shard whose master does not answer the
// record counts as not applied.
func (s *Store) Applied(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error) {
	concerned := make([]bool, len(s.tags))
	for _, r := range reads {
		concerned[s.shardOf(r.Entity)] = true
	}
	var shards []int
	var replies []*redis.StringCmd
	var commands []redis.Cmder
	for shard, tag := range s.tags {
		if concerned[shard] || len(reads) == 0 {
			shards = append(shards, shard)
			replies = append(replies, redis.NewStringCmd(ctx, "hget", keyspace.ProgressKey(tag), progress.PositionField(p)))
			commands = append(commands, replies[len(replies)-1])
		}
	}
	s.send(ctx, s.masters.question, commands, func(i int) int { return shards[i] })
	var others []int // shards in which another plan has the partition, or none
	for i, reply := range replies {
		tag := s.tags[shards[i]]
		at, err := parsePosition(reply.Val())
		switch failure := reply.Err(); {
		case errors.Is(failure, state.ErrUnavailable):
			return false, nil
		case failure != nil && !errors.Is(failure, redis.Nil):
			return false, fmt.Errorf("read the progress of %v: %w", p, failure)
		case err != nil:
			return false, fmt.Errorf("%s: %w", keyspace.ProgressKey(tag), err)
		case !at.Exists():
			others = append(others, shards[i])
		case at.Offset <= offset:
			return false, nil
		}
	}
	if len(others) == 0 {
		return true, nil
	}
	progress := make(map[int]state.Position, len(others))
	err := s.positions(ctx, others, []state.Partition{p}, func(_, shard int, at state.Position) { progress[shard] = at })
	if err != nil {
		return false, fmt.Errorf("read the progress of %v: %w", p, err)
	}
	return state.Lowest(slices.Collect(maps.Values(progress))) > offset, nil
}

// Log returns the log with the tag of a position; zero if no shard that answers knows it.
func (s *Store) Log(ctx context.Context, tag string) (state.LogID, error) {
	replies := askShards(ctx, s, s.masters.write, func(key string) *redis.StringCmd {
		return redis.NewStringCmd(ctx, "hget", key, progress.LogField(tag))
	})
	var missing error
	for _, reply := range replies {
		if text := reply.Val(); text != "" {
			return state.ParseLogID(text), nil
		}
		if err := reply.Err(); err != nil && !errors.Is(err, redis.Nil) {
			missing = err
		}
	}
	if missing != nil {
		return state.LogID{}, fmt.Errorf("read what log %s is: %w", tag, missing)
	}
	return state.LogID{}, nil
}

// parsePosition parses a position in a reply: nil or "" is none.
func parsePosition(reply any) (state.Position, error) {
	text, _ := reply.(string)
	return state.ParsePosition(text)
}
