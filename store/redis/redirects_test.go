package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// disputed is a cluster's slot that has left one master and that the other has not taken: each redirects to the other.
type disputed struct {
	*moving
	slot     int
	from, to *redistest.Server
}

func newDisputed(t *testing.T) *disputed {
	d := &disputed{moving: newMoving(t)}
	d.from, d.to = d.node, d.cluster.Nodes[1]
	d.slot = d.halfMoved(d.tags[d.shard], d.from, d.to, 1000)
	d.give(d.from)
	return d
}

// give tells a master that the slot is the second one's.
func (d *disputed) give(told *redistest.Server) {
	d.Helper()
	id := d.to.Client(d.TB).ClusterMyID(d.Context()).Val()
	if err := told.Client(d.TB).Do(d.Context(), "cluster", "setslot", d.slot, "node", id).Err(); err != nil {
		d.Fatal(err)
	}
}

// redirectedHook calls a function once a command was redirected as often as the client follows.
type redirectedHook struct{ then func() }

func (redirectedHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redirectedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if redirected(err) {
			h.then()
		}
		return err
	}
}

func (h redirectedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		for _, c := range commands {
			if redirected(c.Err()) {
				h.then()
			}
		}
		return err
	}
}

// While masters do not agree who has a slot, commands wait until they do, alone and in pipelines.
func TestCommandsFollowADisputedSlot(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*disputed) error{
		"alone": func(d *disputed) error {
			n, err := d.redis.HLen(t.Context(), keyspace.ProgressKey(d.tags[d.shard])).Result()
			if err == nil && n == 0 {
				err = errors.New("there is no progress")
			}
			return err
		},
		"in a pipeline": func(d *disputed) error {
			pipe := d.redis.Pipeline()
			for _, tag := range d.tags {
				pipe.HLen(t.Context(), keyspace.ProgressKey(tag))
			}
			_, err := pipe.Exec(t.Context())
			return err
		},
		"the progress": func(d *disputed) error {
			_, err := d.Progress(t.Context(), []state.Partition{transactions})
			return err
		},
		"a batch": func(d *disputed) error {
			if r := d.batch(10, 20); r.Behind || r.Lags(d.shard) {
				t.Errorf("behind %v, lagging %v; want neither", r.Behind, r.Lagging)
			}
			d.count(20, 20)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisputed(t)
			FollowSlots(d.redis)
			agreed := false
			d.redis.AddHook(redirectedHook{func() {
				if !agreed {
					agreed = true
					d.give(d.to)
				}
			}})
			if err := call(d); err != nil {
				t.Error(err)
			}
			if !agreed {
				t.Error("nothing was redirected, so nothing was tested")
			}
		})
	}
}

// If the masters do not agree, the shard is unavailable, and the others are not.
func TestSlotThatStaysDisputed(t *testing.T) {
	t.Parallel()
	d := newDisputed(t)
	FollowSlots(d.redis)
	if _, err := d.Progress(t.Context(), []state.Partition{transactions}); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("the progress: got error %v, want that the master is unavailable", err)
	}
	for i, s := range d.amount(d.devices...) {
		if other := i == len(d.devices)-1; other != (s.Err == nil) || !other && !errors.Is(s.Err, state.ErrUnavailable) {
			t.Errorf("device %d: error %v; want one only of the shard that moves", i, s.Err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	d.redis.AddHook(redirectedHook{cancel})
	began := time.Now()
	if err := d.redis.HLen(ctx, keyspace.ProgressKey(d.tags[d.shard])).Err(); !redirected(err) || time.Since(began) > lastPause {
		t.Errorf("a caller that has gone waits %v and gets %v; want the redirection at once", time.Since(began), err)
	}
}
