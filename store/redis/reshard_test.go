package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/store/redis/reshard"
)

// resharded is a namespace whose shards change, with the number of events of each entity.
type resharded struct {
	*testing.T
	store   *Store
	options []Option
	random  *rand.Rand
	offset  int64
	want    map[string]int64
}

// onResharded runs a test on each kind of server, with plain and with hashed entities in keys, and with children that
// are embedded and spilled.
func onResharded(t *testing.T, test func(r *resharded)) {
	for server, connect := range ownServers() {
		t.Run(server, func(t *testing.T) {
			client := connect(t)
			for name, options := range map[string][]Option{"plain": nil, "hashed": {HashEntities(secret)}} {
				t.Run(name, func(t *testing.T) {
					s := New(client, testkit.Namespace(t), 2, options...)
					if err := s.Create(t.Context()); err != nil {
						t.Fatal(err)
					}
					start(t, s, transactions)
					r := &resharded{T: t, store: s, options: options, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
					r.write(60)
					test(r)
				})
			}
		})
	}
}

// write applies further batches.
func (r *resharded) write(batches int) {
	r.Helper()
	w := r.store.newWriter()
	for range batches {
		apply(r.T, w, r.batch())
	}
}

// batch makes the next events, a third of them of one entity with many children.
func (r *resharded) batch() *state.Batch {
	r.Helper()
	b := begin(r.T, r.store, transactions)
	for range 30 {
		e := event{offset: r.offset, device: fmt.Sprint("d", max(0, r.random.IntN(60)-20)), user: fmt.Sprint("u", r.random.IntN(90)), time: 100*day + r.random.Int64N(5*day)}
		fillPairs(b, e)
		r.offset++
		r.want[e.device]++
		r.want[e.device+"|"+e.user]++
	}
	return b
}

// check compares all counts.
func (r *resharded) check() {
	r.Helper()
	for entity, want := range r.want {
		series := pairs
		if !strings.Contains(entity, "|") {
			series = beside
		}
		if got := count(r, r.store, series, entity); got != want {
			r.Errorf("%s counts %d, want %d", entity, got, want)
		}
	}
}

func (r *resharded) resharder() *reshard.Resharder {
	return resharderOf(r.store)
}

func resharderOf(s *Store) *reshard.Resharder {
	return &reshard.Resharder{
		Redis: s.redis, Namespace: s.namespace, Report: func(string, int) {}, Await: func(context.Context) error { return nil },
	}
}

// now makes the test continue with a number of shards.
func (r *resharded) now(shards int) {
	r.store = New(r.store.redis, r.store.namespace, shards, r.options...)
}

// to reshards the namespace.
func (r *resharded) to(shards int) {
	r.Helper()
	if err := r.resharder().Spread(r.Context(), shards); err != nil {
		r.Fatal(err)
	}
	r.now(shards)
}

// keys returns the keys of all shards for a number of shards.
func (r *resharded) keys(shards int) (list []string) {
	r.Helper()
	for shard := range shards {
		pattern := keyspace.ShardTag(r.store.namespace, shard, shards) + "*"
		scan := func(ctx context.Context, c redis.Cmdable) error {
			for it := c.Scan(ctx, 0, pattern, 1000).Iterator(); it.Next(ctx); {
				list = append(list, it.Val())
			}
			return nil
		}
		if cluster, ok := r.store.redis.(*redis.ClusterClient); ok {
			for _, node := range masterClients(r.T, cluster) {
				_ = scan(r.Context(), node)
			}
		} else {
			_ = scan(r.Context(), r.store.redis)
		}
	}
	return list
}

func masterClients(t *testing.T, cluster *redis.ClusterClient) (list []*redis.Client) {
	t.Helper()
	found := make(chan *redis.Client, 100)
	err := cluster.ForEachMaster(t.Context(), func(_ context.Context, c *redis.Client) error { found <- c; return nil })
	if close(found); err != nil {
		t.Fatal(err)
	}
	for c := range found {
		list = append(list, c)
	}
	return list
}

// A namespace that is spread over more shards gives the same answers, keeps its times to live, and still counts each
// event once.
func TestReshard(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		old := r.store
		r.to(8)
		r.check()
		for shard, positions := 0, begin(r, r.store, transactions).Ranges[0].Progress; shard < 8; shard++ {
			if positions[shard].Offset != r.offset {
				r.Errorf("shard %d continues at %d, want %d", shard, positions[shard].Offset, r.offset)
			}
		}
		for _, key := range []string{childKey(r.store, beside, "d1"), childKey(r.store, beside, "d7")} {
			if ttl := r.store.redis.TTL(ctx, key).Val(); ttl < 21*24*time.Hour || ttl > 25*24*time.Hour {
				r.Errorf("%s expires after %v, want 21 to 25 days", key, ttl)
			}
		}
		if err := r.store.Create(ctx); err != nil {
			r.Error(err)
		}
		before := len(r.keys(2))
		r.write(20)
		r.check()
		if got := len(r.keys(2)); got != before || before < 40 {
			r.Errorf("the old shards had %d keys, and %d after events in the new ones; want at least 40, unchanged", before, got)
		}
		if err := r.resharder().Spread(ctx, 16); err == nil || !strings.Contains(err.Error(), "--delete-old first") {
			r.Errorf("resharding with old keys left: got error %v, want a refusal", err)
		}
		if err := r.resharder().DeleteOld(ctx); err != nil {
			r.Error(err)
		}
		if left := r.keys(2); len(left) > 2 { // their progress, which says what took over
			r.Errorf("the old shards still have the keys %q", left)
		}
		if err := r.resharder().DeleteOld(ctx); fmt.Sprint(err) != "the namespace has no keys of an earlier number of shards" {
			r.Errorf("a second deletion of old keys: got error %v, want a refusal", err)
		}
		if err := r.resharder().Cancel(ctx); fmt.Sprint(err) != "the namespace is not being resharded" {
			r.Errorf("a cancellation after the end: got error %v, want a refusal", err)
		}
		if err := old.Create(ctx); fmt.Sprint(err) != fmt.Sprintf("namespace %q has 8 shards, and this process began with 2: start it again", old.namespace) {
			r.Errorf("a processor that began with 2 shards: got error %v, want that there are 8", err)
		}
		var layout *layoutError
		if _, err := old.Read(ctx, []state.Read{{Series: beside, Entity: "d1"}}); !errors.As(err, &layout) {
			r.Errorf("an API that began with 2 shards: got error %v, want a layoutError", err)
		}
		again := New(r.store.redis, r.store.namespace, 2)
		again.hashing = r.store.hashing
		if err := again.Adopt(ctx); err != nil || again.Shards() != 8 {
			r.Errorf("a process that starts again has %d shards, error %v; want 8", again.Shards(), err)
		}
		r.to(16)
		r.write(10)
		r.check()
	})
}

// While shards are frozen, nothing is applied to them, claimed, placed, dropped, refilled or spilled, and questions are answered.
func TestFrozenShardsDoNotChange(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		held, _ := r.store.Inspect(ctx, beside, "d0")
		for _, tag := range r.store.tags {
			r.store.redis.HSet(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField, "token")
		}
		b, w := r.batch(), r.store.newWriter()
		for what, err := range map[string]error{
			"dropped": errorOf(r.store.Drop(ctx, held, nil, packed.Loss{}, 0)), "refilled": r.store.Refill(ctx, held, inspector.Refill{}),
			"applied": w.Apply(ctx, b), "gap noted": r.store.Gap(ctx, transactions, day),
			"claimed": errorOf(r.store.Claim(ctx, []state.Partition{transactions}, state.Claimant{Version: "v9"})),
			"placed":  errorOf(r.store.Place(ctx, testkit.FirstPlacement(transactions, 2, 7))),
			"filled":  r.store.StartFill(ctx, state.FillStart{Fill: &state.Fill{ID: "f"}, Partition: transactions, Log: "l"}),
		} {
			if err == nil || !strings.Contains(err.Error(), "weir reshard has not finished") {
				r.Errorf("%s while frozen: got error %v, want a refusal", what, err)
			}
		}
		key, child := childKey(r.store, beside, "d0"), childKey(r.store, pairs, "d0|u100")
		value := r.store.redis.Get(ctx, key).Val()
		progress := keyspace.ProgressKey(r.store.tags[r.store.shardOf("d0")])
		reply, err := r.store.redis.Eval(ctx, compactLua, []string{key, child, progress}, append(replacing([]byte(value), nil)[:6], 1, "spilled", 0, "", "")...).Int64Slice()
		if err != nil || reply[0] != 0 || r.store.redis.Get(ctx, key).Val() != value {
			r.Errorf("a spill while frozen: got the reply %v, error %v; want no change", reply, err)
		}
		for _, tag := range r.store.tags {
			r.store.redis.HDel(ctx, keyspace.ProgressKey(tag), keyspace.FrozenField)
		}
		apply(r.T, w, b)
		r.write(5)
		r.check()
	})
}

func errorOf[T any](_ T, err error) error { return err }

// Resharding that is killed at any moment can be started again, with the same command, or given up. Events are applied
// meanwhile.
func TestReshardingIsKilled(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		for kill := 1; ; kill += 5 {
			ctx, cancel := context.WithCancel(r.Context())
			var steps atomic.Int64
			resharder := r.resharder()
			resharder.Report = func(string, int) {
				if steps.Add(1) == int64(kill) {
					cancel()
				}
			}
			err := resharder.Spread(ctx, 6)
			killed := ctx.Err() != nil
			cancel()
			if !killed {
				if err != nil {
					r.Fatal(err)
				}
				break
			}
			if err != nil {
				if err := r.resharder().Spread(r.Context(), 8); err == nil || !strings.Contains(err.Error(), "being spread over 6") {
					r.Fatalf("resharding to another number meanwhile: got error %v, want a refusal", err)
				}
				r.write(1)
			}
			if kill%2 == 0 && err != nil {
				if err := r.resharder().Cancel(r.Context()); err != nil {
					r.Fatal(err)
				}
				if left := r.keys(6); len(left) > 0 {
					r.Errorf("cancelling leaves the keys %q, want none", left)
				}
			}
		}
		r.now(6)
		r.write(5)
		r.check()
	})
}

// Copies that are lost before they are used are found, and a key that cannot be copied is named.
func TestReshardingComparesCopies(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		lost := childKey(New(r.store.redis, r.store.namespace, 8, r.options...), beside, "d3")
		var deleted atomic.Bool
		resharder := r.resharder()
		resharder.Report = func(doing string, _ int) {
			if doing == "copied" && r.store.redis.Exists(ctx, lost).Val() == 1 && deleted.CompareAndSwap(false, true) {
				r.store.redis.Del(ctx, lost)
			}
		}
		if err := resharder.Spread(ctx, 8); err != nil {
			r.Error(err)
		}
		if !deleted.Load() {
			r.Error("the test deleted no copy")
		}
		r.now(8)
		r.check()
		if err := r.resharder().DeleteOld(ctx); err != nil {
			r.Fatal(err)
		}
		foreign := childKey(r.store, beside, "d5")
		r.store.redis.Del(ctx, foreign)
		r.store.redis.RPush(ctx, foreign, "x")
		if err := r.resharder().Spread(ctx, 16); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), foreign) {
			r.Errorf("a key of another type: got error %v, want WRONGTYPE with the key %s", err, foreign)
		}
	})
}

// A new shard that lost its last copies in a failover is not used until it is copied again.
func TestHalfCopiedShardIsNotUsed(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		r.to(8)
		shard := r.store.shardOf("d3")
		progress := keyspace.ProgressKey(r.store.tags[shard])
		r.store.redis.Del(ctx, progress, childKey(r.store, beside, "d3"))
		r.store.redis.HSet(ctx, progress, keyspace.FrozenField, "token")
		if _, err := r.store.Claim(ctx, []state.Partition{transactions}, state.Claimant{Version: ""}); err == nil || !strings.Contains(err.Error(), "weir reshard has not finished") {
			r.Errorf("a claim of a frozen shard: got error %v, want a refusal", err)
		}
		const command = "1 of 8 shards lack keys, which a failover has lost: run weir reshard --to 8 --yes first"
		for what, err := range map[string]error{"deletion of old keys": r.resharder().DeleteOld(ctx), "another number": r.resharder().Spread(ctx, 16)} {
			if err == nil || err.Error() != command {
				r.Errorf("%s: got error %v, want %s", what, err, command)
			}
		}
		b := r.othersGoOn(shard)
		r.copiedAgain(b)
	})
}

// A new shard whose server went back to before the resharding is copied again from the old keys, of which the log may have lost the
// events: it is not read from the log, and the others go on.
func TestShardFromBeforeTheReshardingIsCopiedAgain(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		r.to(8)
		shard := r.store.shardOf("d3")
		r.store.redis.Del(ctx, keyspace.ProgressKey(r.store.tags[shard]))
		lost := "1 of 8 shards have no progress: start a processor, and do what it says of them first"
		if err := r.resharder().DeleteOld(ctx); err == nil || err.Error() != lost {
			r.Errorf("deletion of old keys: got error %v, want %s", err, lost)
		}
		if err := r.store.CheckLayout(ctx); err != nil {
			r.Fatal(err)
		}
		watched, stop := context.WithCancel(ctx)
		n := NewNamespace(r.store)
		n.applies.Store(true)
		var watching sync.WaitGroup
		watching.Go(func() { n.Watch(watched) })
		testkit.Eventually(r.T, time.Minute, "the shard is frozen", func() (bool, string) {
			fields := r.store.redis.HKeys(ctx, keyspace.ProgressKey(r.store.tags[shard])).Val()
			return slices.Contains(fields, keyspace.FrozenField), fmt.Sprint(fields)
		})
		stop()
		watching.Wait()
		b := r.othersGoOn(shard)
		lost = "1 of 8 shards lack keys, which a failover has lost: run weir reshard --to 8 --yes first"
		if err := r.resharder().DeleteOld(ctx); err == nil || err.Error() != lost {
			r.Errorf("deletion of old keys: got error %v, want %s", err, lost)
		}
		r.copiedAgain(b)
	})
}

// Old keys are deleted only if all new shards are complete after the wait for replicas: a failover may lose one until then, and
// something else may be recorded of it before it is noticed.
func TestOldKeysAreKeptForAShardThatIsLostMeanwhile(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ctx := r.Context()
		r.to(8)
		resharder := r.resharder()
		resharder.Await = func(context.Context) error {
			progress := keyspace.ProgressKey(r.store.tags[3])
			return errors.Join(r.store.redis.Del(ctx, progress).Err(), r.store.redis.HSet(ctx, progress, "evicted", "run:1").Err())
		}
		old := len(r.keys(2))
		if err := resharder.DeleteOld(ctx); err == nil || !strings.HasPrefix(err.Error(), "1 of 8 shards have no progress") {
			r.Errorf("error %v, want a shard without progress", err)
		}
		if left := len(r.keys(2)); left != old {
			r.Errorf("the old shards have %d keys, %d before", left, old)
		}
	})
}

// A namespace may be resharded before its first event, or while a shard lacks its progress: what is copied of that begins anew.
func TestShardsWithoutProgressAreResharded(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]int{"one": 1, "all": 2} {
		t.Run(name, func(t *testing.T) {
			onResharded(t, func(r *resharded) {
				ctx := r.Context()
				for shard := range drop {
					r.store.redis.Del(ctx, keyspace.ProgressKey(r.store.tags[shard]))
				}
				r.to(8)
				if err := r.store.CheckLayout(ctx); err != nil {
					r.Fatal(err)
				}
				r.store.freezeLost(ctx)
				start(r, r.store, transactions)
				for shard, at := range begin(r, r.store, transactions).Ranges[0].Progress {
					want := r.offset
					if shard%2 < drop {
						want = 0
					}
					if at.Offset != want {
						r.Errorf("shard %d continues at %d, want %d", shard, at.Offset, want)
					}
				}
				if left := r.keys(8); drop == 2 && len(left) > 8 {
					r.Errorf("shards that begin anew have the keys %q", left)
				}
				if err := r.resharder().DeleteOld(ctx); err != nil {
					r.Error(err)
				}
			})
		})
	}
}

// copiedAgain copies the shards that lack keys, which have not applied a batch, and checks that they have all then.
func (r *resharded) copiedAgain(b *state.Batch) {
	r.Helper()
	r.to(8)
	r.applyAgain(b)
	r.write(5)
	r.check()
	if err := r.resharder().DeleteOld(r.Context()); err != nil {
		r.Error(err)
	}
}

// othersGoOn checks that a shard that lacks keys lags and is not answered from, and that the others go on. It returns the batch that
// they have applied.
func (r *resharded) othersGoOn(lacking int) *state.Batch {
	r.Helper()
	const want = "1 of 8 state shards lack keys, which a failover has lost while they were copied: run weir reshard --to 8 --yes"
	n := NewNamespace(New(r.store.redis, r.store.namespace, 8, r.options...))
	if err := n.Adopt(r.Context()); err != nil {
		r.Fatal(err)
	}
	claims, err := n.Claim(r.Context(), []state.Partition{transactions}, state.Claimant{Version: ""})
	if err != nil {
		r.Fatal(err)
	}
	for shard, at := range claims[0].Progress {
		if at.Exists() == (shard == lacking) {
			r.Errorf("shard %d is claimed at %v; want that shard %d is not, and the others are", shard, at, lacking)
		}
	}
	if err := n.Available(r.Context(), lacking); err == nil || err.Error() != want || !errors.Is(err, state.ErrUnavailable) {
		r.Errorf("the shard's availability: got %v, want %s", err, want)
	}
	err = n.Ready(r.Context())
	if part, ok := errors.AsType[interface {
		error
		Degraded() bool
	}](err); !ok || !part.Degraded() || err.Error() != want {
		r.Errorf("readiness: got %v, want %s", err, want)
	}
	h, err := n.History(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for entity := range r.want {
		err := h.Missing(&state.Read{Series: beside, Entity: entity})
		if lacks := n.Store().shardOf(entity) == lacking; lacks != errors.Is(err, state.ErrUnavailable) {
			r.Errorf("an answer about %s: got error %v; its shard lacks keys: %v", entity, err, lacks)
		}
	}
	if to, n, err := n.Store().Unfinished(r.Context()); to != 0 || n != 1 || err != nil {
		r.Errorf("unfinished: to %d, %d shards, error %v; want 0, 1", to, n, err)
	}
	// A process that does not know it yet applies a batch.
	n = NewNamespace(New(r.store.redis, r.store.namespace, 8, r.options...))
	if err := n.Adopt(r.Context()); err != nil {
		r.Fatal(err)
	}
	b := r.batch()
	b.EveryShard = true
	b.Ranges[0].Progress[lacking] = b.Ranges[0].Progress[(lacking+1)%8]
	if err := n.NewWriter().Apply(r.Context(), b); err != nil {
		r.Fatal(err)
	}
	for shard, at := range b.Ranges[0].Progress {
		if lags := b.Ranges[0].Lags(shard); lags != (shard == lacking) || !lags && at.Offset != b.Ranges[0].To {
			r.Errorf("shard %d: at %v of %d, lags %v", shard, at, b.Ranges[0].To, lags)
		}
	}
	return b
}

// applyAgain applies a batch once more, in the shards that lack it.
func (r *resharded) applyAgain(b *state.Batch) {
	r.Helper()
	now := begin(r.T, r.store, transactions)
	b.Ranges[0].Progress, b.Ranges[0].Lagging = now.Ranges[0].Progress, nil
	apply(r.T, r.store.newWriter(), b)
}

// The progress of an old shard stays, with what took over from it, although its slot moves while the old keys are deleted.
func TestOldKeysAreDeletedWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	r := &resharded{T: t, store: New(cluster.Client(t), testkit.Namespace(t), 2), random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
	if err := r.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, r.store, transactions)
	r.write(5)
	r.to(4)
	tag := keyspace.ShardTag(r.store.namespace, 0, 2)
	slot := keyspace.SlotOf(tag[1 : len(tag)-1])
	owner := slices.IndexFunc(cluster.Nodes, func(n *redistest.Server) bool { return n.Client(t).ClusterCountKeysInSlot(t.Context(), slot).Val() > 0 })
	deleted := func() {
		err := r.resharder().DeleteOld(t.Context())
		held := cluster.Nodes[owner].Client(t).HGetAll(t.Context(), keyspace.ProgressKey(tag)).Val()
		if err != nil || held[keyspace.ShardsField] != "4" {
			t.Errorf("error %v; the old shard has %v, want that 4 shards took over", err, held)
		}
	}
	to := cluster.Nodes[(owner+1)%len(cluster.Nodes)]
	if err := redistest.MoveSlotSlowly(t.Context(), slot, deleted, keyspace.ProgressKey(tag), cluster.Nodes[owner], to, cluster.Nodes...); err != nil {
		t.Error(err)
	}
}

// Impossible numbers of shards are refused with the reason.
func TestReshardRefuses(t *testing.T) {
	t.Parallel()
	s := newStore(t, miniredis(t), 4)
	r := resharderOf(s)
	for _, to := range []int{0, 2, 4, 6, 32768} {
		want := fmt.Sprintf("4 shards cannot be spread over %d: the new number is a multiple of the old one, up to 16384", to)
		if err := r.Spread(t.Context(), to); err == nil || err.Error() != want {
			t.Errorf("to %d shards: got error %v, want %s", to, err, want)
		}
	}
	r.Namespace = "nobody's"
	if err := r.Spread(t.Context(), 8); err == nil || err.Error() !=
		`there is no layout of namespace "nobody's": if it was there, start a processor, which finds it in the shards and writes it again` {
		t.Error(err)
	}
	s.redis.HSet(t.Context(), keyspace.LayoutKey(s.namespace), keyspace.ShardsField, "many")
	r.Namespace = s.namespace
	if err := r.Spread(t.Context(), 8); err == nil || !strings.Contains(err.Error(), `has shards "many"`) {
		t.Error(err)
	}
}
