package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
)

// A partition's progress stands under the version of the plan that is applied
// to it, see kinds.Partition.Under. Who applies another plan must claim the
// partition first; what is under way of the plan before finds no progress then,
// and changes nothing. With the claim stands until when the plan before was
// applied, in the same shard and by the same script.

//go:embed claim.lua
var claimSource string

// Absent is the progress of a shard that has none.
const Absent int64 = -1

// Claim takes a partition for a plan. It returns by shard the next offset to
// apply, or Absent, and for how long the plan has had the partition in the
// shard that it took last.
func (s *Store) Claim(ctx context.Context, p kinds.Partition, version string) ([]int64, time.Duration, error) {
	progress, held, err := s.claim(ctx, s.tags, p, version, "claim", kinds.MaxAhead.Milliseconds())
	if err != nil {
		return nil, 0, fmt.Errorf("claim %s: %w", progressField(p), err)
	}
	return progress, held, nil
}

// Progress reads for each partition, by shard, the next offset to apply, under
// whatever plan, or Absent.
func (s *Store) Progress(ctx context.Context, partitions []kinds.Partition) ([][]int64, error) {
	var all [][]int64
	for _, p := range partitions {
		progress, _, err := s.claim(ctx, s.tags, p, "", "read")
		if err != nil {
			return nil, fmt.Errorf("read the progress of %s: %w", progressField(p), err)
		}
		all = append(all, progress)
	}
	return all, nil
}

// Applied says whether the record at an offset of a partition is applied in all
// shards that reads look at; in all there are, without any reads. The partition
// is that under a plan, or under whatever plan where this one does not have it.
// It writes nothing, and is one round trip where the plan has the partition. In a
// shard whose master does not answer it is not applied, as far as is known.
func (s *Store) Applied(ctx context.Context, p kinds.Partition, offset int64, reads []kinds.Read) (bool, error) {
	concerned := make([]bool, len(s.tags))
	for _, r := range reads {
		concerned[s.shardOf(r.Entity)] = true
	}
	var shards []int
	var tags []string
	var replies []*redis.StringCmd
	var commands []redis.Cmder
	for shard, tag := range s.tags {
		if concerned[shard] || len(reads) == 0 {
			shards, tags = append(shards, shard), append(tags, tag)
			replies = append(replies, redis.NewStringCmd(ctx, "hget", progressKey(tag), progressField(p)))
			commands = append(commands, replies[len(replies)-1])
		}
	}
	s.send(ctx, s.masters.question, commands, func(i int) int { return shards[i] })
	var others []string // shards in which another plan has the partition, or none
	for i, reply := range replies {
		next, err := parseOffset(reply.Val())
		switch failure := reply.Err(); {
		case errors.Is(failure, kinds.ErrUnavailable):
			return false, nil
		case failure != nil && !errors.Is(failure, redis.Nil):
			return false, fmt.Errorf("read the progress of %s: %w", progressField(p), failure)
		case err != nil:
			return false, fmt.Errorf("%s: %w", progressKey(tags[i]), err)
		case next == Absent:
			others = append(others, tags[i])
		case next <= offset:
			return false, nil
		}
	}
	if len(others) == 0 {
		return true, nil
	}
	progress, _, err := s.claim(ctx, others, p, "", "read")
	if err != nil {
		return false, fmt.Errorf("read the progress of %s: %w", progressField(p), err)
	}
	return slices.Min(progress) > offset, nil
}

// Start gives the shards that have no progress in a partition, under whatever
// plan, one: the offset from which the partition is read.
func (s *Store) Start(ctx context.Context, p kinds.Partition, offset int64) error {
	if _, _, err := s.claim(ctx, s.tags, p, "", "start", strconv.FormatInt(offset, 10)); err != nil {
		return fmt.Errorf("write the first progress of %s: %w", progressField(p), err)
	}
	return nil
}

// Forget takes back the progress of a partition in all shards, so that it is
// read anew from where Start says.
func (s *Store) Forget(ctx context.Context, p kinds.Partition) error {
	if _, _, err := s.claim(ctx, s.tags, p, "", "forget"); err != nil {
		return fmt.Errorf("delete the progress of %s: %w", progressField(p), err)
	}
	return nil
}

// Gap notes that records of a partition were passed over whose timestamps go up
// to a moment, in milliseconds, or to that of the newest record applied.
func (s *Store) Gap(ctx context.Context, p kinds.Partition, until int64) error {
	if _, _, err := s.claim(ctx, s.tags, p, "", "gap", strconv.FormatInt(until, 10)); err != nil {
		return fmt.Errorf("note a gap in %s: %w", progressField(p), err)
	}
	return nil
}

// claim calls the script in shards.
func (s *Store) claim(ctx context.Context, tags []string, p kinds.Partition, version, what string, more ...any) ([]int64, time.Duration, error) {
	topic, under, _ := strings.Cut(p.Topic, "@")
	if version == "" {
		version = under
	}
	args := append([]any{topic, p.ID, version, what}, more...)
	pipe := s.redis.Pipeline()
	replies := make([]*redis.Cmd, len(tags))
	for shard, tag := range tags {
		replies[shard] = pipe.Eval(ctx, claimSource, []string{progressKey(tag)}, args...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, err
	}
	progress := make([]int64, len(tags))
	held := int64(math.MaxInt64)
	for shard, reply := range replies {
		pair, err := reply.Slice()
		if err == nil && len(pair) != 2 {
			err = fmt.Errorf("%d replies", len(pair))
		}
		if err != nil {
			return nil, 0, err
		}
		if progress[shard], err = parseOffset(pair[0]); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", progressKey(tags[shard]), err)
		}
		if age, err := parseOffset(pair[1]); err == nil && age >= 0 {
			held = min(held, age)
		}
	}
	if held > math.MaxInt64/int64(time.Millisecond) {
		return progress, math.MaxInt64, nil
	}
	return progress, time.Duration(held) * time.Millisecond, nil
}
