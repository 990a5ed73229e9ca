package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

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
