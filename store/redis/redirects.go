package redisstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// FollowSlots makes a client of a cluster send commands again whose slot is moving while the masters do not agree who has
// it. Each names another one, and the client itself follows that only a few times, without a pause. A command that is
// redirected was not executed, so it is safe to repeat. If they disagree for longer, the command's error is the
// redirection. It does nothing to a client of a single master.
func FollowSlots(client redis.UniversalClient) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.AddHook(slotFollower{})
	}
}

// The pauses before commands are sent again, 0.6 s in all.
const firstPause, lastPause = 5 * time.Millisecond, 320 * time.Millisecond

// slotFollower is a hook for all commands and pipelines. Weir sends no transactions, which could not be repeated in part.
type slotFollower struct{}

func (slotFollower) DialHook(next redis.DialHook) redis.DialHook { return next }

func (slotFollower) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		for pause := firstPause; redirected(err) && pause <= lastPause && wait(ctx, pause); pause *= 2 {
			err = next(ctx, command)
		}
		return err
	}
}

func (slotFollower) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		for pause := firstPause; pause <= lastPause; pause *= 2 {
			if !slices.ContainsFunc(commands, wasRedirected) || !wait(ctx, pause) {
				break
			}
			left := slices.DeleteFunc(slices.Clone(commands), func(c redis.Cmder) bool { return !wasRedirected(c) })
			_ = next(ctx, left) // each command has its own error
			err = nil
			for _, c := range slices.Backward(commands) {
				err = cmp.Or(c.Err(), err)
			}
		}
		return err
	}
}

// redirected reports whether a server says that another one has the slot.
func redirected(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, asks := redis.IsAskError(err)
	return moved || asks
}

func wasRedirected(c redis.Cmder) bool { return redirected(c.Err()) }

// wait waits, and reports whether the context has not ended.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
