package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/store/redis/reshard"
)

// Keys that change while the keys are copied and compared are copied again: those that events are applied to, and those
// that children are spilled to. State cannot be dropped meanwhile.
func TestReshardWhileEventsAreApplied(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		var mu sync.Mutex
		written, comparing := 0, false
		resharder := r.resharder()
		resharder.Report = func(doing string, _ int) {
			mu.Lock()
			defer mu.Unlock()
			comparing = comparing || doing == "compared"
			if doing == "compared" || !comparing { // the last keys are copied while nothing is applied
				r.write(3)
				written++
			}
			held, _ := r.store.Inspect(r.Context(), beside, "d0")
			if _, err := r.store.Drop(r.Context(), held, nil, packed.Loss{}, 0); !frozen(err) {
				r.Errorf("a drop while keys are %s: got error %v, want a refusal", doing, err)
			}
		}
		if err := resharder.Spread(r.Context(), 8); err != nil {
			r.Fatal(err)
		}
		if written < 4 {
			r.Errorf("events were applied %d times during resharding, want at least 4", written)
		}
		r.now(8)
		r.check()
		r.write(10)
		r.check()
		if err := r.resharder().DeleteOld(r.Context()); err != nil {
			r.Error(err)
		}
		if left := r.keys(2); len(left) > 2 { // their progress, which says what took over
			r.Errorf("the old shards still have the keys %q", left)
		}
	})
}

// Processes that use a namespace continue with its new shards: writers, questions and claims. Each event counts once,
// and no answer is lower than an earlier one.
func TestNamespaceIsSpreadWhileItIsUsed(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		n := NewNamespace(r.store)
		var using sync.WaitGroup
		using.Go(func() { n.Watch(ctx) })
		using.Go(func() {
			last := int64(0)
			for ctx.Err() == nil {
				states, err := n.Read(ctx, []state.Read{{Series: beside, Entity: "d0", Last: 1000}})
				if ctx.Err() != nil {
					return
				}
				if err != nil || states[0].Err != nil {
					r.Error(err)
					return
				}
				now := int64(0)
				for _, b := range states[0].Buckets {
					now += b.Value.Num
				}
				if now < last {
					r.Errorf("d0 counts %d, after an answer of %d", now, last)
				}
				last = now
			}
		})
		var applied atomic.Int64
		using.Go(func() {
			w := n.NewWriter()
			for ; ctx.Err() == nil; applied.Add(1) {
				r.applyOnce(n, w, r.batch())
			}
		})
		someMore := func() {
			most := applied.Load() + 5
			testkit.Eventually(r.T, time.Minute, "more batches are applied", func() (bool, string) {
				return applied.Load() >= most, fmt.Sprintf("%d of %d", applied.Load(), most)
			})
		}
		someMore()
		const to = 16
		if err := r.resharder().Spread(r.Context(), to); err != nil {
			r.Fatal(err)
		}
		testkit.Eventually(r.T, time.Minute, "the namespace has the new shards", func() (bool, string) {
			return n.Shards() == to, fmt.Sprint(n.Shards())
		})
		someMore()
		stop()
		using.Wait()
		r.now(to)
		r.check()
	})
}

// A process that asks for nothing finds the new number of shards, too.
func TestWatchFindsMoreShards(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		n := NewNamespace(r.store)
		var watching sync.WaitGroup
		watching.Go(func() { n.Watch(ctx) })
		const to = 8
		if err := r.resharder().Spread(ctx, to); err != nil {
			r.Fatal(err)
		}
		testkit.Eventually(r.T, time.Minute, "the namespace has the new shards", func() (bool, string) {
			return n.Shards() == to, fmt.Sprint(n.Shards())
		})
		stop()
		watching.Wait()
	})
}

// applyOnce applies a batch as a processor does: from the progress that it finds, and again if the namespace was spread
// over more shards meanwhile.
func (r *resharded) applyOnce(n *Namespace, w store.Writer, b *state.Batch) {
	p := b.Ranges[0].Partition
	for {
		progress, err := n.Progress(r.Context(), []state.Partition{p})
		if err != nil {
			r.Error(err)
			return
		}
		b.Ranges[0] = state.PartitionRange{Partition: p, Progress: progress[0], To: b.Ranges[0].To}
		for err = w.Apply(r.Context(), b); frozen(err); {
			err = w.Apply(r.Context(), b)
		}
		if err != nil {
			r.Error(err)
			return
		}
		if !b.Ranges[0].Behind {
			return
		}
	}
}

// A process that hangs while it copies, and continues after another has finished or given up, changes nothing.
func TestReshardingThatHungChangesNothing(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		for _, after := range []int64{1, 2, 3} {
			var steps atomic.Int64
			hung := r.resharder()
			hung.Report = func(string, int) {
				if steps.Add(1) != after {
					return
				}
				if err := r.resharder().Spread(r.Context(), 4); err != nil {
					r.Fatal(err)
				}
				r.now(4)
				r.write(3)
			}
			if err := hung.Spread(r.Context(), 4); err == nil || !strings.Contains(err.Error(), "another weir reshard has") {
				r.Fatalf("the process that hung: got error %v, want that another weir reshard has taken over", err)
			}
			r.write(3)
			r.check()
			// The next case starts with a new namespace of two shards.
			if err := r.resharder().DeleteOld(r.Context()); err != nil {
				r.Fatal(err)
			}
			r.again()
		}
	})
}

// A process that hangs after it has copied everything changes nothing, either: before it gives the new shards their
// progress, or before it switches over.
func TestReshardingThatHungAtTheEndChangesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hangs      func(r *resharded, hung *reshard.Resharder, meanwhile func())
		another    func(r *resharded) error
		shards     int
		complained string
	}{
		"before the progress": {
			hangs: func(_ *resharded, hung *reshard.Resharder, meanwhile func()) {
				waits := 0
				hung.Await = func(context.Context) error {
					if waits++; waits == 4 { // before, the old shards are not yet frozen
						meanwhile()
					}
					return nil
				}
			},
			another:    func(r *resharded) error { return r.resharder().Spread(r.Context(), 4) },
			shards:     4,
			complained: "write the progress of 4 shards: RESHARDING another weir reshard has begun",
		},
		"before the switch": {
			hangs: func(r *resharded, _ *reshard.Resharder, meanwhile func()) {
				r.store.redis.AddHook(&beforeCall{command: "eval", text: "'" + keyspace.SwitchedField + "'", do: meanwhile})
			},
			another: func(r *resharded) error {
				return errors.Join(r.resharder().Cancel(r.Context()), r.resharder().Spread(r.Context(), 8))
			},
			shards:     8,
			complained: "to 4 shards: RESHARDING another weir reshard has begun",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, miniredis(t), 2)
			start(t, s, transactions)
			r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
			r.write(20)
			var left map[string]map[string]string
			hung := r.resharder()
			test.hangs(r, hung, func() {
				if err := test.another(r); err != nil {
					t.Fatal(err)
				}
				r.now(test.shards)
				r.write(3)
				left = r.progress()
			})
			if err := hung.Spread(t.Context(), 4); err == nil || !strings.Contains(err.Error(), test.complained) {
				t.Errorf("the process that hung: got error %v, want %s", err, test.complained)
			}
			if got := r.progress(); !reflect.DeepEqual(got, left) {
				t.Errorf("the process that hung has changed layout and progress to\n%v\nwant\n%v", got, left)
			}
			r.write(3)
			r.check()
		})
	}
}

// progress returns the layout, and the progress of the shards for each number of shards in the test.
func (r *resharded) progress() map[string]map[string]string {
	keys := []string{keyspace.LayoutKey(r.store.namespace)}
	for _, shards := range []int{2, 4, 8} {
		for shard := range shards {
			keys = append(keys, keyspace.ProgressKey(keyspace.ShardTag(r.store.namespace, shard, shards)))
		}
	}
	found := map[string]map[string]string{}
	for _, key := range keys {
		found[key] = r.store.redis.HGetAll(r.Context(), key).Val()
	}
	return found
}

// beforeCall calls a function once, before a command, or a script with a text.
type beforeCall struct {
	command, text string
	do            func()
	done          bool
}

func (*beforeCall) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*beforeCall) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *beforeCall) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == b.command && strings.Contains(fmt.Sprint(cmd.Args()...), b.text) && !b.done {
			b.done = true
			b.do()
		}
		return next(ctx, cmd)
	}
}

// again makes the test continue with a new namespace of two shards.
func (r *resharded) again() {
	r.Helper()
	r.store = New(r.store.redis, testkit.Namespace(r.T), 2, r.options...)
	if err := r.store.Create(r.Context()); err != nil {
		r.Fatal(err)
	}
	start(r.T, r.store, transactions)
	r.offset, r.want = 0, map[string]int64{}
	r.write(60)
}

// A master that was replaced by a replica, or restarted, while its keys were copied may have gone back in time: copying
// starts over. The last moment is when everything is copied, and replicas are waited for.
func TestReshardBeginsAgainWhenAServerWasReplaced(t *testing.T) {
	t.Parallel()
	for name, persistence := range map[string]redistest.Options{"same": {}, "restarted": {AOF: true}, "restarted at the end": {AOF: true}} {
		t.Run(name, func(t *testing.T) {
			server := redistest.New(t, persistence)
			s := newStore(t, server.Client(t), 2)
			start(t, s, transactions)
			r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
			r.write(20)
			var mu sync.Mutex
			began, awaited, restarted := 0, 0, false
			restart := func(now bool) {
				if now && !restarted {
					restarted = true
					server.Kill()
					server.Start()
				}
			}
			resharder := r.resharder()
			resharder.Report = func(doing string, _ int) {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(doing, "began again") {
					began++
				}
				restart(name == "restarted" && doing == "compared")
			}
			resharder.Await = func(context.Context) error {
				awaited++
				restart(name == "restarted at the end" && awaited == 4)
				return nil
			}
			if err := resharder.Spread(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{true: 1}[persistence.AOF]; began != want {
				t.Errorf("copying began again %d times, want %d", began, want)
			}
			r.now(4)
			r.write(5)
			r.check()
		})
	}
}

// A shard comes back from a moment at which it was half copied, after the old keys were deleted: the same command has it
// begin anew, and leaves shards alone that are complete, or frozen to be copied further.
func TestHalfCopiedShardWithoutOldKeysBeginsAnew(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		r.to(8)
		if err := r.resharder().DeleteOld(ctx); err != nil {
			r.Fatal(err)
		}
		shard := r.store.shardOf("d3")
		progress := keyspace.ProgressKey(r.store.tags[shard])
		r.store.redis.Del(ctx, progress)
		r.store.redis.HSet(ctx, progress, keyspace.FrozenField, "token")
		another := keyspace.ProgressKey(r.store.tags[(shard+1)%8])
		r.store.redis.HSet(ctx, another, keyspace.FrozenField, "another", keyspace.CopyingField, "another")
		if l, err := r.resharder().Layout(ctx); err != nil || l.Incomplete != 1 || !l.Forsaken(8) || l.Forsaken(16) {
			r.Errorf("the layout is %+v, error %v; want one incomplete shard", l, err)
		}
		if err := r.resharder().Spread(ctx, 8); err != nil {
			r.Fatal(err)
		}
		if r.store.redis.Exists(ctx, progress).Val() != 0 || r.store.redis.Exists(ctx, another).Val() != 1 {
			r.Error("want that the progress of the incomplete shard alone is deleted")
		}
		r.store.redis.HDel(ctx, another, keyspace.FrozenField, keyspace.CopyingField)
		if err := r.resharder().Spread(ctx, 8); err == nil || !strings.Contains(err.Error(), "8 shards cannot be spread over 8") {
			r.Errorf("the same command again: got error %v, want a refusal", err)
		}
		if _, err := r.store.Place(ctx, testkit.FirstPlacement(transactions, 8, 0)); err != nil {
			r.Errorf("the shard does not begin: %v", err)
		}
		if got := count(r, r.store, beside, "d3"); got != 0 {
			r.Errorf("d3 counts %d before it is read again, want 0", got)
		}
	})
}
