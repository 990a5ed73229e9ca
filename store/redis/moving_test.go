package redisstore

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// halfMoved moves some of the keys of a tag's slot from one master to another, and stops there.
func (h *hung) halfMoved(tag string, source, to *redistest.Server, keys int) (slot int) {
	h.Helper()
	ctx, from, target := h.Context(), source.Client(h.TB), to.Client(h.TB)
	do := func(c *redis.Client, args ...any) {
		h.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			h.Fatalf("%v: %v", args, err)
		}
	}
	slot = keyspace.SlotOf(tag[1 : len(tag)-1])
	do(target, "cluster", "setslot", slot, "importing", from.ClusterMyID(ctx).Val())
	do(from, "cluster", "setslot", slot, "migrating", target.ClusterMyID(ctx).Val())
	host, port, err := net.SplitHostPort(to.Addr())
	if err != nil {
		h.Fatal(err)
	}
	for _, key := range from.ClusterGetKeysInSlot(ctx, slot, keys).Val() {
		do(from, "migrate", host, port, key, 0, 60_000)
	}
	return slot
}

// moving is a shard whose slot moves: events of some of its devices, and of one on another master.
type moving struct {
	*hung
	shard   int
	devices []string // the last one is another master's
	share   state.PartitionRange
	write   *writer
}

func newMoving(t *testing.T) *moving {
	m := &moving{hung: newHung(t, Deadlines(time.Minute, time.Minute))} // no master hangs
	start(t, m.Store, transactions)
	m.write = m.newWriter()
	m.shard = m.shardOf(m.device(0, true))
	for n := 0; len(m.devices) < 8; n++ {
		if d := m.device(n, true); m.shardOf(d) == m.shard {
			m.devices = append(m.devices, d)
		}
	}
	m.devices = append(m.devices, m.device(0, false))
	m.share = begin(t, m.Store, transactions).Ranges[0]
	m.share.Lagging = make([]bool, len(m.share.Progress))
	m.batch(0, 10)
	return m
}

// batch applies one event of each device for each offset.
func (m *moving) batch(from, to int64) *state.PartitionRange {
	m.Helper()
	b := &state.Batch{Ranges: []state.PartitionRange{m.share}, EveryShard: true}
	for offset := from; offset < to; offset++ {
		for _, device := range m.devices {
			fill(b, 0, event{offset: offset, device: device, user: "u", time: 100 * day, cents: 5})
		}
	}
	b.Ranges[0].To = to
	apply(m.TB, m.write, b)
	return &b.Ranges[0]
}

// count expects each device to have want events, and the other master's device others.
func (m *moving) count(want, others int64) {
	m.Helper()
	for i, s := range m.amount(m.devices...) {
		if i == len(m.devices)-1 {
			want = others
		}
		if s.Err != nil || len(s.Buckets) != 1 || s.Buckets[0].Value.Num != want {
			m.Errorf("device %d has %v, error %v; want %d events", i, s.Buckets, s.Err, want)
		}
	}
}

// While a slot moves key by key, a call about keys on both sides is refused: its shard lags, the others continue, and
// nothing is lost once the slot has moved.
func TestSlotMovesKeyByKey(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	slot := m.halfMoved(m.tags[m.shard], m.node, m.cluster.Nodes[1], 5)
	if r := m.batch(10, 20); r.Behind || !r.Lags(m.shard) || r.Lags(m.shardOf(m.devices[8])) {
		t.Fatalf("half moved: behind %v, lagging %v; want only the moving shard %d to lag", r.Behind, r.Lagging, m.shard)
	}
	m.batch(20, 30) // a lagging shard applies nothing, or its state would have a hole
	m.count(10, 30) // a question reads each entity separately, on either side
	if err := redistest.MoveSlot(context.Background(), slot, m.node, m.cluster.Nodes[1], m.cluster.Nodes...); err != nil {
		t.Fatal(err)
	}
	progress, err := m.Progress(t.Context(), []state.Partition{transactions})
	if err != nil {
		t.Fatal(err)
	}
	if at := progress[0][m.shard]; at.Offset != 10 {
		t.Fatalf("the shard is at offset %d, want 10", at.Offset)
	}
	m.share.Progress, m.share.Lagging = progress[0], nil
	if r := m.batch(10, 30); r.Behind || r.Lagging != nil {
		t.Fatalf("after the move: behind %v, lagging %v; want neither", r.Behind, r.Lagging)
	}
	m.count(30, 30)
}

// A slot whose keys have all moved, but which has not been handed over yet, is read from its new
// master (ASK): nothing lags, and no answer is missing.
func TestSlotWhoseKeysHaveMoved(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	m.halfMoved(m.tags[m.shard], m.node, m.cluster.Nodes[1], 1000)
	if r := m.batch(10, 20); r.Behind || slices.Contains(r.Lagging, true) {
		t.Fatalf("with all keys moved: behind %v, lagging %v; want neither", r.Behind, r.Lagging)
	}
	m.count(20, 20)
	if s := m.amount(m.devices[0]); s[0].Err != nil || len(s[0].Buckets) != 1 { // a pipeline of one command
		t.Errorf("after the move: got %v, error %v; want one bucket", s[0].Buckets, s[0].Err)
	}
	if n := len(m.node.Client(t).ClusterGetKeysInSlot(t.Context(), keyspace.SlotOf(m.tags[m.shard][1:len(m.tags[m.shard])-1]), 1).Val()); n > 0 {
		t.Error("the old master has keys of the slot again, want none")
	}
}

// A slot moves to a master that has no shard of the namespace, as when a cluster grows, and so not the scripts. Events
// go on before the slot has been handed over, and keys are compacted there.
func TestSlotMovesToAMasterWithoutShards(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	client := cluster.Client(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	w, share := s.newWriter(), begin(t, s, transactions).Ranges[0]
	next := int64(0)
	batch := func() {
		t.Helper()
		b := &state.Batch{Ranges: []state.PartitionRange{share}, EveryShard: true}
		fill(b, 0, event{offset: next, device: "d", user: "u", time: 100 * day, cents: 5})
		next++
		b.Ranges[0].To = next
		apply(t, w, b)
		if r := &b.Ranges[0]; r.Behind || slices.Contains(r.Lagging, true) {
			t.Fatalf("event %d: behind %v, lagging %v; want neither", next, r.Behind, r.Lagging)
		}
	}
	batch()
	source := redistest.SlotOwner(t.Context(), s.tags[0], cluster.Nodes...)
	target := cluster.Nodes[0]
	if target == source {
		target = cluster.Nodes[1]
	}
	(&hung{TB: t}).halfMoved(s.tags[0], source, target, 1000)
	const all = 200
	key := string(keyspace.AppendKey(nil, s.tags[0], amount.Group, []byte("d")))
	compacted, last := 0, int64(0)
	for next < all {
		batch()
		length := client.StrLen(t.Context(), key).Val()
		if length < last {
			compacted++
		}
		last = length
	}
	if compacted == 0 {
		t.Error("nothing was compacted")
	}
	reads := []state.Read{{Series: amount, Entity: "d", First: 100, Last: 100}}
	if states, err := s.Read(t.Context(), reads); err != nil || len(states[0].Buckets) != 1 || states[0].Buckets[0].Value.Num != 5*all {
		t.Errorf("got %+v, error %v; want a sum of %d", states, err, 5*all)
	}
}

// A command that is redirected runs once, also if the first one that its node was sent with it is
// refused because its slot is moving: at once, or where both were redirected to.
func TestRedirectedCommandsRunOnce(t *testing.T) {
	t.Parallel()
	for name, redirectedBefore := range map[string]bool{"by the first node": false, "by the second node": true} {
		t.Run(name, func(t *testing.T) {
			h := newHung(t, Deadlines(time.Minute, time.Minute)) // no master hangs
			var tags []string
			for shard, mine := range h.mine {
				if mine {
					tags = append(tags, h.tags[shard])
				}
			}
			m, err := h.masters.of(t.Context(), tags[0])
			if err != nil {
				t.Fatal(err)
			}
			client, source := h.node.Client(t), h.node
			stays, one, other, counter := tags[2]+"stays", tags[0]+"one", tags[0]+"other", tags[1]+"counter"
			for _, key := range []string{stays, one, other, counter} {
				if err := client.Set(t.Context(), key, 0, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			var commands []redis.Cmder
			if redirectedBefore {
				source, commands = h.cluster.Nodes[1], append(commands, redis.NewStringCmd(t.Context(), "get", stays))
				for _, tag := range tags[:2] {
					if err := redistest.MoveSlot(t.Context(), keyspace.SlotOf(tag[1:len(tag)-1]), h.node, source, h.cluster.Nodes...); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, tag := range tags[:2] {
				h.halfMoved(tag, source, h.cluster.Nodes[2], 1)
			}
			refused, redirected := redis.NewSliceCmd(t.Context(), "mget", one, other), redis.NewIntCmd(t.Context(), "incr", counter)
			m.exec(t.Context(), append(commands, refused, redirected))
			if err := refused.Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN") {
				t.Errorf("keys of a slot on both sides: got error %v, want TRYAGAIN", err)
			}
			if redirected.Val() != 1 || redirected.Err() != nil {
				t.Errorf("a key that has moved is counted to %d, error %v; want 1", redirected.Val(), redirected.Err())
			}
		})
	}
}

// A compaction replaces keys of a slot that moves. Redis redirects a script to the other master as soon as it accesses
// a missing key, so a key must not be missing in between.
func TestCompactionInASlotThatMoves(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	m.halfMoved(m.tags[m.shard], m.node, m.cluster.Nodes[1], 0)
	const batches = 200
	key := string(keyspace.AppendKey(nil, m.tags[m.shard], events.Group, []byte(m.devices[0])))
	compacted, last := 0, int64(0)
	for offset := int64(10); offset < batches; offset++ {
		if r := m.batch(offset, offset+1); r.Behind || r.Lagging != nil && r.Lags(m.shard) {
			t.Fatalf("offset %d: behind %v, lagging %v; want neither for shard %d", offset, r.Behind, r.Lagging, m.shard)
		}
		length := m.redis.StrLen(t.Context(), key).Val()
		if length < last {
			compacted++
		}
		last = length
	}
	if compacted == 0 {
		t.Error("nothing was compacted, so nothing was tested")
	}
	m.count(batches, batches)
}
