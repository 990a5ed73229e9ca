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

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
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

// hangingDeadlines are those of stores of which a master may hang. A call to it takes as long as they are, which a busy
// machine keeps elsewhere.
var hangingDeadlines = Deadlines(time.Second, 2*time.Second)

// hangingClient is a client that waits for no longer than the deadlines.
func hangingClient(t testing.TB, cluster *redistest.Cluster) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, ReadTimeout: time.Minute, DialTimeout: time.Minute,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// newHung makes the store.
func newHung(t testing.TB, options ...Option) *hung {
	cluster := redistest.NewCluster(t)
	client := hangingClient(t, cluster)
	const shards = 24
	h := &hung{TB: t, cluster: cluster, node: cluster.Nodes[0], mine: make([]bool, shards)}
	client.OnNewNode(func(node *redis.Client) {
		if node.Options().Addr == h.node.Addr() {
			node.AddHook(askedHook{&h.asked})
		}
	})
	h.Store = New(client, "hung", shards, append([]Option{hangingDeadlines}, options...)...)
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

// While one master of three hangs, nothing asks it once that is known, so nothing waits for its deadline, and Ready says what
// is missing. What the others do meanwhile is a promise of all stores, see TestConformanceWithoutAMaster.
func TestAMasterThatHangsIsNotAsked(t *testing.T) {
	t.Parallel()
	h := newHung(t)
	ctx := t.Context()
	register := func() error {
		_, err := h.Register(ctx, state.Registration{Plan: &state.Plan{Version: "two"}})
		return err
	}
	if err := register(); err != nil {
		t.Fatal(err)
	}
	start(t, h.Store, transactions)
	var devices []string
	for n := range 10 {
		devices = append(devices, h.device(n, false), h.device(n, true))
	}
	w, share := h.newWriter(), begin(t, h.Store, transactions).Ranges[0]
	share.Lagging = make([]bool, len(share.Progress))
	batch := func(from int64) {
		b := &state.Batch{Ranges: []state.PartitionRange{share}, EveryShard: true}
		for i, device := range devices {
			fill(b, 0, event{offset: from + int64(i), device: device, user: "u", time: 100 * day, cents: 5})
		}
		apply(t, w, b)
	}
	batch(0)

	h.node.Pause()
	h.amount(devices...) // this one opens the breaker
	h.notAsked("a read", func() {
		for range 200 {
			h.amount(devices...)
		}
	})
	h.notAsked("a batch", func() {
		for n := range int64(5) {
			batch(20 + 20*n)
		}
	})
	h.notAsked("taking a partition", func() {
		if err := errors.Join(h.Create(ctx), register()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Claim(ctx, []state.Partition{transactions}, state.Claimant{Version: "two"}); err != nil {
			t.Fatal(err)
		}
	})
	h.notAsked("the history, and what is applied", func() {
		_, err := h.History(ctx)
		_, err2 := h.Clock(ctx)
		_, err3 := h.Applied(ctx, transactions, 1, []state.Read{{Series: events, Entity: devices[1]}})
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
	})
	if err := h.Ready(ctx); !errors.As(err, new(*partlyDown)) {
		t.Errorf("Ready while a master hangs: got error %v, want a partlyDown", err)
	}
	h.node.Resume()
	untilServed(t, h.Store)
	if err := h.Ready(ctx); err != nil {
		t.Errorf("Ready after the master answers again: got error %v", err)
	}
}

// A server that loads its data counts as one that does not answer. If it is the only one, questions and batches fail as
// a whole: there are no others that could go on.
func TestServerLoadsItsData(t *testing.T) {
	t.Parallel()
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

// A shard that has lost its progress is emptied also while the master of the layout hangs.
func TestShardIsEmptiedWithoutTheMasterOfTheLayout(t *testing.T) {
	t.Parallel()
	h := newHung(t)
	ctx := t.Context()
	start(t, h.Store, transactions)
	of, err := h.masters.of(ctx, keyspace.LayoutKey(h.namespace))
	if err != nil {
		t.Fatal(err)
	}
	shard := slices.IndexFunc(h.tags, func(tag string) bool {
		m, err := h.masters.of(ctx, tag)
		return err == nil && m != of
	})
	key := keyspace.ProgressKey(h.tags[shard])
	if n := h.redis.Del(ctx, key).Val(); n != 1 {
		t.Fatal("the shard has no progress to lose")
	}
	node := h.cluster.Nodes[slices.IndexFunc(h.cluster.Nodes, func(n *redistest.Server) bool { return n.Addr() == of.address })]
	node.Pause()
	defer node.Resume()
	if err := h.empty(ctx, []int{shard}); err != nil {
		t.Fatal(err)
	}
	if fields := h.redis.HGetAll(ctx, key).Val(); fields["begun"] != "1" || fields[keyspace.SecretField] == "" {
		t.Errorf("the shard has the fields %v, want that it has begun, with the secret", fields)
	}
}
