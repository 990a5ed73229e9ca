package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// A partition's progress is stored under the version of the plan that is applied to it, see state.Partition.WithPlan. A
// process that applies another plan must claim the partition first; batches of the earlier plan then find no progress,
// and change nothing. The claim also records until when the earlier plan was applied, in the same shard and by the same
// script.

//go:embed find.lua
var findLua string

//go:embed claim.lua
var claimLua string

//go:embed read.lua
var readLua string

// callPartitions is the most partitions of one script call: it blocks others for a few milliseconds at most. Lua passes
// up to some thousand values to a command.
const callPartitions = 500

// Claim takes partitions for a plan, with one pipeline to each master. It returns one claim for
// each partition. Shards whose master does not answer, or is another than the claimant has seen, while others can be claimed
// are missing in the claims.
func (s *Store) Claim(ctx context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error) {
	claims := make([]state.Claim, len(partitions))
	for i := range claims {
		claims[i].Progress = make([]state.Position, len(s.tags))
		claims[i].OwnedMs = math.MaxInt64
	}
	var calls progressCalls
	for first := 0; first < len(partitions); first += callPartitions {
		some := partitions[first:min(first+callPartitions, len(partitions))]
		args := s.claimArgs(by.Version, by.GivesWayTo)
		for _, p := range some {
			args = append(args, p.Topic, p.ID)
		}
		for shard, tag := range s.tags {
			args := append([]any{s.serverSeen(by.Seen, shard)}, args...)
			calls.add(claimLua, shard, tag, args, 4*len(some), func(reply []any) error {
				for i := range some {
					if err := takeClaim(&claims[first+i], shard, reply[4*i:]); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	err := calls.sendEach(ctx, s, func(shard int, err error) {
		for i := range claims {
			claims[i].Miss(shard, err)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("claim %d partitions: %w", len(partitions), err)
	}
	return claims, nil
}

// takeClaim adds the reply of one shard about one partition.
func takeClaim(c *state.Claim, shard int, reply []any) error {
	var err error
	if c.Progress[shard], err = parsePosition(reply[0]); err != nil {
		return err
	}
	if text, _ := reply[1].(string); text != "" {
		ownedMs, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a time at which a plan took a partition", text)
		}
		c.OwnedMs = min(c.OwnedMs, max(ownedMs, 0))
	}
	if text, _ := reply[2].(string); text != "" && c.Topic == nil {
		seen, err := state.ParseFirstSeen(text)
		if err != nil {
			return err
		}
		c.Topic = &seen
	}
	if keeper, _ := reply[3].(string); keeper != "" {
		c.KeptBy = keeper
	}
	return nil
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
		args = append(args, keyspace.PartitionField(p))
	}
	replies, commands := make([]*redis.SliceCmd, len(shards)), make([]redis.Cmder, len(shards))
	for i, shard := range shards {
		args[1] = keyspace.ProgressKey(s.tags[shard])
		replies[i] = redis.NewSliceCmd(ctx, slices.Clone(args)...)
		commands[i] = replies[i]
	}
	s.send(ctx, s.masters.write, commands, func(i int) int { return shards[i] })
	var calls progressCalls
	for n, shard := range shards {
		tag := s.tags[shard]
		if err := replies[n].Err(); err != nil {
			return err
		}
		var others []int // partitions that another plan has, or none
		for i, held := range replies[n].Val() {
			at, err := parsePosition(held)
			if err != nil {
				return fmt.Errorf("%s: %w", keyspace.ProgressKey(tag), err)
			}
			if !at.Exists() {
				others = append(others, i)
			}
			take(i, shard, at)
		}
		for first := 0; first < len(others); first += callPartitions {
			some := others[first:min(first+callPartitions, len(others))]
			calls.add(readLua, shard, tag, readArgs(partitions, some), len(some), func(reply []any) error {
				for n, i := range some {
					at, err := parsePosition(reply[n])
					if err != nil {
						return err
					}
					take(i, shard, at)
				}
				return nil
			})
		}
	}
	return calls.send(ctx, s)
}

func readArgs(partitions []state.Partition, some []int) (args []any) {
	for _, i := range some {
		topic, version, _ := strings.Cut(partitions[i].Topic, "@")
		args = append(args, topic, partitions[i].ID, version)
	}
	return args
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
			replies = append(replies, redis.NewStringCmd(ctx, "hget", keyspace.ProgressKey(tag), keyspace.PartitionField(p)))
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
	replies := askShards(ctx, s, s.masters.write, func(progress string) *redis.StringCmd {
		return redis.NewStringCmd(ctx, "hget", progress, keyspace.LogField(tag))
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

// progressCalls are calls of the scripts of progress, in pipelines to each master.
type progressCalls []progressCall

type progressCall struct {
	lua     string
	shard   int
	key     string
	args    []any
	replies int               // number of values in the reply, -1 if it is not a list
	take    func([]any) error // handles them
}

func (c *progressCalls) add(lua string, shard int, tag string, args []any, replies int, take func([]any) error) {
	*c = append(*c, progressCall{lua, shard, keyspace.ProgressKey(tag), args, replies, take})
}

// send sends the calls and handles the replies. It returns the error of a call.
func (c progressCalls) send(ctx context.Context, s *Store) error {
	var first error
	err := c.sendEach(ctx, s, func(_ int, err error) { first = cmp.Or(first, err) })
	return cmp.Or(err, first)
}

// sendEach sends the calls and handles the replies of the shards that can be reached. It reports
// the others, unless none can.
func (c progressCalls) sendEach(ctx context.Context, s *Store, missing func(shard int, err error)) error {
	replies := c.exchange(ctx, s)
	if err := c.begin(ctx, s, replies); err != nil {
		return err
	}
	reached := false
	for i := range c {
		if err := replies[i].Err(); err != nil && !errors.Is(err, state.ErrUnavailable) {
			return err
		}
		reached = reached || replies[i].Err() == nil
	}
	for i, call := range c {
		if err := replies[i].Err(); err != nil {
			if !reached {
				return err
			}
			missing(call.shard, err)
			continue
		}
		values := []any{replies[i].Val()}
		if call.replies >= 0 {
			values, _ = replies[i].Val().([]any)
			if len(values) != call.replies {
				return fmt.Errorf("%s: %w", call.key, errReply)
			}
		}
		if err := call.take(values); err != nil {
			return fmt.Errorf("%s: %w", call.key, err)
		}
	}
	return nil
}

// exchange sends the calls and returns their replies, each with its own error.
func (c progressCalls) exchange(ctx context.Context, s *Store) []*redis.Cmd {
	replies, commands := make([]*redis.Cmd, len(c)), make([]redis.Cmder, len(c))
	for i, call := range c {
		replies[i] = redis.NewCmd(ctx, append([]any{"eval", findLua + call.lua, 1, call.key}, call.args...)...)
		replies[i].SetFirstKeyPos(3)
		commands[i] = replies[i]
	}
	// One call to each shard at a time: thousands of partitions may take a server longer than the
	// deadline of a pipeline, without it hanging.
	for first := 0; first < len(c); first += len(s.tags) {
		some := commands[first:min(first+len(s.tags), len(c))]
		s.send(ctx, s.masters.write, some, func(i int) int { return c[first+i].shard })
	}
	for _, reply := range replies {
		if err := reply.Err(); err != nil && strings.HasPrefix(err.Error(), "OTHERRUN ") {
			reply.SetErr(errOtherRun)
		}
	}
	return replies
}

// errOtherRun is the error of a claim in a shard of a server that the claimant has not seen. It is a state.ErrUnavailable, until
// the definitions are bound again.
var errOtherRun = fmt.Errorf("its server has been restarted or replaced since the definitions were bound to its state: %w", state.ErrUnavailable)

// begin empties the shards of the calls that were refused because their shards have not begun, and sends these calls again.
func (c progressCalls) begin(ctx context.Context, s *Store, replies []*redis.Cmd) error {
	var refused progressCalls
	var of, shards []int
	for i, call := range c {
		if notBegun(replies[i].Err()) {
			refused, of, shards = append(refused, call), append(of, i), append(shards, call.shard)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	if err := s.empty(ctx, shards); err != nil {
		return err
	}
	for n, reply := range refused.exchange(ctx, s) {
		replies[of[n]] = reply
	}
	return nil
}
