package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// hung is a store on a cluster of three masters, one of which can hang.
type hung struct {
	*Store
	testing.TB
	cluster *redistest.Cluster
	node    *redistest.Server
	mine    []bool       // by shard, whether the node holds it
	asked   atomic.Int64 // how often the node was asked for its data
}

// askedHook counts the commands sent to one server, except the client's own commands and the probes.
type askedHook struct{ count *atomic.Int64 }

func (askedHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a askedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !slices.Contains([]string{"ping", "cluster", "hello", "client", "command", "readonly", "info"}, cmd.Name()) {
			a.count.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (a askedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !slices.Contains([]string{"hello", "client"}, cmds[0].Name()) {
			a.count.Add(1)
		}
		return next(ctx, cmds)
	}
}

// notAsked fails if the node is asked meanwhile: the caller would wait for a deadline.
func (h *hung) notAsked(what string, do func()) {
	h.Helper()
	before := h.asked.Load()
	do()
	if n := h.asked.Load() - before; n > 0 {
		h.Errorf("%s asks a master that hangs %d times, want never", what, n)
	}
}

// newHung makes the store. A call to a master that hangs takes as long as the deadlines, which a busy machine keeps
// elsewhere.
func newHung(t testing.TB, options ...Option) *hung {
	cluster := redistest.NewCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute, DialTimeout: time.Minute,
	})
	t.Cleanup(func() { _ = client.Close() })
	const shards = 24
	h := &hung{TB: t, cluster: cluster, node: cluster.Nodes[0], mine: make([]bool, shards)}
	client.OnNewNode(func(node *redis.Client) {
		if node.Options().Addr == h.node.Addr() {
			node.AddHook(askedHook{&h.asked})
		}
	})
	h.Store = New(client, "hung", shards, append([]Option{Deadlines(time.Second, 2*time.Second)}, options...)...)
	if err := h.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for shard, tag := range h.tags {
		m, err := h.masters.of(t.Context(), tag)
		if err != nil {
			t.Fatal(err)
		}
		h.mine[shard] = m.address == h.node.Addr()
	}
	if !slices.Contains(h.mine, true) || !slices.Contains(h.mine, false) {
		t.Fatalf("shards on the node that will hang: %v, want some but not all", h.mine)
	}
	return h
}

// device is the n-th device whose state is on the node that hangs, or is not.
func (h *hung) device(n int, mine bool) string {
	for i := 0; ; i++ {
		device := fmt.Sprint("d", i)
		if h.mine[h.shardOf(device)] != mine {
			continue
		}
		if n--; n < 0 {
			return device
		}
	}
}

// amount reads the amounts paid with devices.
func (h *hung) amount(devices ...string) []state.WindowState {
	h.Helper()
	var reads []state.Read
	for _, device := range devices {
		reads = append(reads, state.Read{Series: events, Entity: device, First: 0, Last: 1 << 40})
	}
	windowStates, err := h.Read(h.Context(), reads)
	if err != nil {
		h.Fatal(err)
	}
	return windowStates
}

// While one master of three hangs, the state on the others is read at once, and reads of its own
// say that it cannot be reached; afterwards everything is read again.
func TestOneMasterHangs(t *testing.T) {
	h := newHung(t)
	ctx := t.Context()
	start(t, h.Store, transactions)
	w := h.newWriter()
	b := begin(t, h.Store, transactions)
	var devices []string
	for n := range 10 {
		for _, mine := range []bool{false, true} {
			devices = append(devices, h.device(n, mine))
			fill(b, 0, event{offset: int64(len(devices)), device: devices[len(devices)-1], user: "u", time: 100 * day, cents: 5})
		}
	}
	b.EveryShard = true
	apply(t, w, b)
	before, err := h.History(ctx)
	if err != nil || before.Missing != nil {
		t.Fatalf("got the history %+v, error %v; want nothing missing", before, err)
	}
	clock, err := h.Clock(ctx)
	if err != nil {
		t.Fatal(err)
	}

	h.node.Pause()
	h.amount(devices...) // this one opens the breaker
	h.notAsked("a read", func() {
		for range 200 {
			for i, s := range h.amount(devices...) {
				if lost := i%2 == 1; lost != errors.Is(s.Err, state.ErrUnavailable) || lost == (len(s.Buckets) > 0) {
					t.Fatalf("device %d: %d buckets, error %v; want it unavailable: %v", i, len(s.Buckets), s.Err, lost)
				}
			}
		}
	})

	history, err := h.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, device := range devices {
		lost := history.Missing(&state.Read{Series: events, Entity: device})
		if errors.Is(lost, state.ErrUnavailable) != (i%2 == 1) {
			t.Errorf("device %d: the history is missing with %v, want it unavailable: %v", i, lost, i%2 == 1)
		}
	}
	if len(history.PlanEpochs) != len(before.PlanEpochs) {
		t.Errorf("got the plan epochs %v, want those of before, %v", history.PlanEpochs, before.PlanEpochs)
	}
	if now, err := h.Clock(ctx); err != nil || now != clock {
		t.Errorf("the clock is %d, error %v; want %d", now, err, clock)
	}
	concerned := func(device string) bool {
		ok, err := h.Applied(ctx, transactions, 1, []state.Read{{Series: events, Entity: device}})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !concerned(devices[0]) || concerned(devices[1]) {
		t.Error("the event is not known as applied on exactly the master that answers")
	}
	if err := h.Ready(ctx); !errors.As(err, new(*partlyDown)) {
		t.Errorf("Ready while a master hangs: got error %v, want a partlyDown", err)
	}

	h.node.Resume()
	untilServed(t, h.Store)
	for i, s := range h.amount(devices...) {
		if s.Err != nil || len(s.Buckets) == 0 {
			t.Errorf("device %d after the master answers again: got %v, error %v; want an amount", i, s.Buckets, s.Err)
		}
	}
	if err := h.Ready(ctx); err != nil {
		t.Errorf("Ready after the master answers again: got error %v", err)
	}
}

// While one master hangs, batches are applied in the shards of the others. Its own shards lag, take
// nothing more, and get all of it when the partition is read again.
func TestShardsOfAHangingMasterLag(t *testing.T) {
	h := newHung(t)
	start(t, h.Store, transactions)
	w := h.newWriter()
	near, far := h.device(0, false), h.device(0, true)
	b := begin(t, h.Store, transactions)
	share := b.Ranges[0]
	share.Lagging = make([]bool, len(share.Progress))
	next := int64(0)
	batch := func(from, to int64) *state.Batch {
		b := &state.Batch{Ranges: []state.PartitionRange{share}, EveryShard: from%20 == 0}
		for offset := from; offset < to; offset++ {
			for _, device := range []string{near, far} {
				fill(b, 0, event{offset: offset, device: device, user: "u" + device, time: 100 * day, cents: 5})
			}
		}
		b.Ranges[0].To = to
		apply(t, w, b)
		return b
	}
	batch(0, 10)
	h.node.Pause()
	for next = 10; next < 60; next += 10 {
		var b *state.Batch
		if next == 10 {
			b = batch(next, next+10) // finds out that it hangs
		} else {
			h.notAsked("a batch", func() { b = batch(next, next+10) })
		}
		if r := &b.Ranges[0]; r.Behind || !r.Lags(h.shardOf(far)) || r.Lags(h.shardOf(near)) {
			t.Fatalf("lagging %v, behind %v; want shard %d to lag, shard %d not, and nothing behind", r.Lagging, r.Behind, h.shardOf(far), h.shardOf(near))
		}
	}
	if got := h.amount(near)[0].Buckets; len(got) != 1 || got[0].Value.Num != 60 {
		t.Errorf("got %v where the master answers, want 60 events", got)
	}
	h.node.Resume()
	untilServed(t, h.Store)
	// It does not take what comes next, which would leave a hole.
	batch(60, 70)
	if got := h.amount(far)[0].Buckets; len(got) != 1 || got[0].Value.Num > 20 {
		t.Errorf("got %v at the master that hung, before its shards have caught up; want at most 20 events", got)
	}
	progress, err := h.Progress(t.Context(), []state.Partition{transactions})
	if err != nil {
		t.Fatal(err)
	}
	share.Progress, share.Lagging = progress[0], nil
	for from := state.Lowest(progress[0]); from < 70; from += 10 {
		batch(from, min(from+10, 70))
	}
	for _, device := range []string{near, far} {
		if got := h.amount(device)[0].Buckets; len(got) != 1 || got[0].Value.Num != 70 {
			t.Errorf("%s: got %v, want 70 events", device, got)
		}
	}
}

// A partition is claimed in the shards of the masters that answer; those of the one that hangs are
// missing, and are claimed once it answers again.
func TestClaimWithoutAMaster(t *testing.T) {
	h := newHung(t)
	p := transactions
	if _, err := h.Place(t.Context(), testkit.FirstPlacement(p.WithPlan("one"), h.Shards(), 5)); err != nil {
		t.Fatal(err)
	}
	plan := &state.Plan{Version: "two"}
	register := func() error {
		_, err := h.Register(t.Context(), state.Registration{Plan: plan})
		return err
	}
	if err := register(); err != nil {
		t.Fatal(err)
	}
	take := func() state.Claim {
		t.Helper()
		for what, err := range map[string]error{"create": h.Create(t.Context()), "register": register()} {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		claims, err := h.Claim(t.Context(), []state.Partition{p}, "two")
		if err != nil {
			t.Fatal(err)
		}
		return claims[0]
	}
	h.node.Pause()
	take() // finds out that it hangs
	var claim state.Claim
	h.notAsked("taking a partition", func() { claim = take() })
	for shard, at := range claim.Progress {
		if missing := errors.Is(claim.Misses(shard), state.ErrUnavailable); missing != h.mine[shard] || missing == at.Exists() {
			t.Errorf("shard %d is at %v, missing: %v; want it missing: %v", shard, at, claim.Misses(shard), h.mine[shard])
		}
	}
	h.node.Resume()
	untilServed(t, h.Store)
	if claim = take(); claim.Missing != nil || state.Lowest(claim.Progress) != 5 || claim.OwnedMs > 120_000 {
		t.Errorf("claimed %+v, want offset 5 in all shards, just claimed", claim)
	}
}

// A server that loads its data counts as one that does not answer. If it is the only one, questions and batches fail as
// a whole: there are no others that could go on.
func TestServerLoadsItsData(t *testing.T) {
	server := redistest.Embedded(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client, 2)
	start(t, s, transactions)
	w, b := s.newWriter(), begin(t, s, transactions)
	fill(b, 0, event{offset: 0, device: "d", user: "u", time: 100 * day, cents: 5})
	reads := []state.Read{{Series: events, Entity: "d", First: 100, Last: 100}}

	server.SetError("LOADING Redis is loading the dataset in memory")
	if states, err := s.Read(t.Context(), reads); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a question: got %+v, error %v; want that the store is unavailable", states, err)
	}
	if err := w.Apply(t.Context(), b); !errors.Is(err, state.ErrUnavailable) || b.Ranges[0].Lagging != nil {
		t.Errorf("a batch: got error %v, lagging %v; want that the store is unavailable, and no shard to lag", err, b.Ranges[0].Lagging)
	}
	if err := s.Ready(t.Context()); err == nil || errors.As(err, new(*partlyDown)) {
		t.Errorf("Ready: got error %v, want one that is not about a part of the masters", err)
	}
	server.SetError("")
	untilServed(t, s)
	apply(t, w, b)
	if states, err := s.Read(t.Context(), reads); err != nil || len(states[0].Buckets) != 1 {
		t.Errorf("after that: got %+v, error %v; want the event", states, err)
	}
}
