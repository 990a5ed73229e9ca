package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/store/redis/reshard"
)

// A command that hangs before any of its calls, and goes on after others have run to their end, changes nothing.
func TestCommandThatHungChangesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(r *resharded) // an attempt that was killed, and what came after it
		hangs  func(ctx context.Context, hung *reshard.Resharder) error
		others func(r *resharded)
		anew   bool // a shard is read from the log again, so what it counts is not compared
	}{
		"spreading": {
			before: (*resharded).killed,
			hangs:  func(ctx context.Context, hung *reshard.Resharder) error { return hung.Spread(ctx, 4) },
			others: func(r *resharded) { r.to(4) },
		},
		"spreading, and the shards are replaced themselves": {
			before: func(*resharded) {}, // the first ever
			hangs:  func(ctx context.Context, hung *reshard.Resharder) error { return hung.Spread(ctx, 4) },
			others: func(r *resharded) {
				r.to(4)
				r.toNext(8)
				r.deleteOld()
			},
		},
		"spreading, and a shard begins anew": {
			before: func(*resharded) {}, // the first ever
			hangs:  func(ctx context.Context, hung *reshard.Resharder) error { return hung.Spread(ctx, 4) },
			others: func(r *resharded) {
				r.to(4)
				r.deleteOld()
				r.loseCopies()
				r.to(4)
				start(r, r.store, transactions)
			},
			anew: true,
		},
		"cancelling": {
			before: (*resharded).killed,
			hangs:  func(ctx context.Context, hung *reshard.Resharder) error { return hung.Cancel(ctx) },
			others: func(r *resharded) { r.to(4) },
		},
		"cancelling twice": {
			before: (*resharded).killed,
			hangs:  func(ctx context.Context, hung *reshard.Resharder) error { return hung.Cancel(ctx) },
			others: func(r *resharded) {
				if err := r.resharder().Cancel(r.Context()); err != nil && err.Error() != "the namespace is not being resharded" {
					r.Fatal(err)
				}
				r.to(4)
			},
		},
		"deleting": {
			before: func(r *resharded) { r.to(4) },
			hangs:  func(ctx context.Context, hung *reshard.Resharder) error { return hung.DeleteOld(ctx) },
			others: func(r *resharded) { r.toNext(8) },
		},
		"copying what a failover has lost": {
			before: func(r *resharded) {
				r.to(4)
				r.loseCopies()
			},
			hangs: func(ctx context.Context, hung *reshard.Resharder) error { return hung.Spread(ctx, 4) },
			others: func(r *resharded) {
				r.to(4)
				r.toNext(8)
			},
		},
		"beginning anew": {
			before: func(r *resharded) {
				r.to(4)
				r.deleteOld()
				r.loseCopies()
			},
			hangs: func(ctx context.Context, hung *reshard.Resharder) error { return hung.Spread(ctx, 4) },
			others: func(r *resharded) {
				if l, err := r.resharder().Layout(r.Context()); err == nil && l.Forsaken(4) {
					r.to(4)
				}
				start(r, r.store, transactions)
				r.toNext(8)
				r.deleteOld()
			},
			anew: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := miniredis(t)
			for call := int64(2); !t.Failed(); call++ { // the first one reads the layout
				s := newStore(t, client, 2)
				start(t, s, transactions)
				r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
				r.write(4)
				test.before(r)
				var left map[string]map[string]string
				hanging := redis.NewClient(client.Options())
				hanging.AddHook(&beforeNth{n: call, do: func() {
					test.others(r)
					if !test.anew {
						r.write(2)
					}
					left = r.progress()
				}})
				hung := r.resharder()
				hung.Redis = hanging
				err := test.hangs(t.Context(), hung)
				if hanging.Close(); left == nil {
					if err != nil || call < 5 {
						t.Errorf("it has made %d calls, error %v", call-1, err)
					}
					return
				}
				if got := r.progress(); !reflect.DeepEqual(got, left) {
					t.Errorf("the command that hung before call %d, with error %v, has changed layout and progress to\n%v\nwant\n%v", call, err, got, left)
				}
				if !test.anew {
					r.write(2)
					r.check()
				}
			}
		})
	}
}

// A command that hung while another was cancelled copies nothing, and leaves the shards as they are.
func TestReshardingThatHungIsCancelled(t *testing.T) {
	t.Parallel()
	client := miniredis(t)
	for call := int64(1); !t.Failed(); call++ {
		s := newStore(t, client, 2)
		start(t, s, transactions)
		r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
		r.write(4)
		cancelled, reached := false, false
		hanging := redis.NewClient(client.Options())
		hanging.AddHook(&beforeNth{n: call, do: func() {
			reached = true
			cancelled = r.resharder().Cancel(t.Context()) == nil
		}})
		hung := r.resharder()
		hung.Redis = hanging
		err := hung.Spread(t.Context(), 4)
		if hanging.Close(); !reached {
			return
		}
		if !cancelled {
			continue // it had not begun, or has ended
		}
		if err == nil || !strings.Contains(err.Error(), "another weir reshard has") {
			t.Errorf("call %d: got error %v, want that another command has taken over", call, err)
		}
		for _, key := range r.keys(4) {
			if !strings.HasSuffix(key, "progress") {
				t.Errorf("call %d: the new shards have the key %s", call, key)
			}
		}
		r.write(2)
		r.check()
		r.to(4)
		r.write(2)
		r.check()
	}
}

// killed leaves copies in new shards, as a command does that is killed while it copies.
func (r *resharded) killed() {
	r.Helper()
	ctx, kill := context.WithCancel(r.Context())
	defer kill()
	resharder := r.resharder()
	resharder.Report = func(doing string, _ int) {
		if doing == "compared" {
			kill()
		}
	}
	if err := resharder.Spread(ctx, 4); !errors.Is(err, context.Canceled) {
		r.Fatalf("got error %v, want that it was killed", err)
	}
}

func (r *resharded) deleteOld() {
	r.Helper()
	if err := r.resharder().DeleteOld(r.Context()); err != nil && !errors.Is(err, reshard.ErrNoOld) {
		r.Fatal(err)
	}
}

// toNext reshards the namespace once more.
func (r *resharded) toNext(shards int) {
	r.Helper()
	r.deleteOld()
	r.to(shards)
}

// loseCopies leaves a shard half copied, as a failover does.
func (r *resharded) loseCopies() {
	r.Helper()
	progress := keyspace.ProgressKey(r.store.tags[r.store.shardOf("d3")])
	token := r.store.redis.HGet(r.Context(), progress, keyspace.ResharderField).Val()
	r.store.redis.Del(r.Context(), progress, childKey(r.store, beside, "d3"))
	r.store.redis.HSet(r.Context(), progress, keyspace.FrozenField, token, keyspace.ResharderField, token)
}

// beforeNth calls a function before the nth command or pipeline.
type beforeNth struct {
	n     int64
	do    func()
	calls atomic.Int64
}

func (*beforeNth) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *beforeNth) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "hello" && cmds[0].Name() != "client" { // of a new connection
			b.count()
		}
		return next(ctx, cmds)
	}
}

func (b *beforeNth) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "hello" && cmd.Name() != "client" {
			b.count()
		}
		return next(ctx, cmd)
	}
}

func (b *beforeNth) count() {
	if b.calls.Add(1) == b.n {
		b.do()
	}
}
