package redisstore

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// halfMoved moves some of the keys of a shard's slot to another master, and leaves
// it at that.
func (h *hung) halfMoved(shard int, to *testkit.RedisServer, keys int) (slot int) {
	h.Helper()
	ctx, from, target := h.Context(), h.node.Client(h.TB), to.Client(h.TB)
	do := func(c *redis.Client, args ...any) {
		h.Helper()
		if err := c.Do(ctx, args...).Err(); err != nil {
			h.Fatal(args, err)
		}
	}
	slot = keyspace.SlotOf(h.tags[shard][1 : len(h.tags[shard])-1])
	do(target, "cluster", "setslot", slot, "importing", from.ClusterMyID(ctx).Val())
	do(from, "cluster", "setslot", slot, "migrating", target.ClusterMyID(ctx).Val())
	host, port, err := net.SplitHostPort(to.Addr())
	if err != nil {
		h.Fatal(err)
	}
	for _, key := range from.ClusterGetKeysInSlot(ctx, slot, keys).Val() {
		do(from, "migrate", host, port, key, 0, 5000)
	}
	return slot
}

// While a slot moves key by key, a call about keys on both sides is refused: its
// shard lags, the others go on, and nothing is lost once the slot has moved.
func TestSlotMovesKeyByKey(t *testing.T) {
	h := newHung(t)
	start(t, h.Store, transactions)
	w := h.newWriter()
	shard := h.shardOf(h.device(0, true))
	var devices []string // of the shard, and one of another master
	for n := 0; len(devices) < 8; n++ {
		if d := h.device(n, true); h.shardOf(d) == shard {
			devices = append(devices, d)
		}
	}
	devices = append(devices, h.device(0, false))
	source := begin(t, h.Store, transactions).Ranges[0]
	source.Lagging = make([]bool, len(source.Progress))
	batch := func(from, to int64) *state.PartitionRange {
		t.Helper()
		b := &state.Batch{Ranges: []state.PartitionRange{source}, EveryShard: true}
		for offset := from; offset < to; offset++ {
			for _, device := range devices {
				fill(b, 0, event{offset: offset, device: device, user: "u", time: 100 * day, cents: 5})
			}
		}
		b.Ranges[0].To = to
		apply(t, w, b)
		return &b.Ranges[0]
	}
	counts := func() (list []int64) {
		for _, s := range h.amount(devices...) {
			switch {
			case errors.Is(s.Err, state.ErrUnavailable):
				list = append(list, -1)
			case s.Err != nil || len(s.Buckets) != 1:
				t.Fatalf("%v, error %v", s.Buckets, s.Err)
			default:
				list = append(list, s.Buckets[0].Value.Num)
			}
		}
		return list
	}
	batch(0, 10)
	slot := h.halfMoved(shard, h.cluster.Nodes[1], 5)
	if s := batch(10, 20); s.Behind || !s.Lags(shard) || s.Lags(h.shardOf(devices[8])) {
		t.Fatalf("behind %v, lagging %v", s.Behind, s.Lagging)
	}
	batch(20, 30) // a shard that lags takes nothing, or it would have a hole
	for i, n := range counts() {
		if n != 10 && n != -1 && i < 8 || i == 8 && n != 30 {
			t.Errorf("device %d counts %d while its slot moves", i, n)
		}
	}
	if err := testkit.MoveSlot(context.Background(), slot, h.node, h.cluster.Nodes[1], h.cluster.Nodes...); err != nil {
		t.Fatal(err)
	}
	progress, err := h.Progress(t.Context(), []state.Partition{transactions})
	if err != nil {
		t.Fatal(err)
	}
	if at := progress[0][shard]; at.Offset != 10 {
		t.Fatalf("the shard is at offset %d", at.Offset)
	}
	source.Progress, source.Lagging = progress[0], nil
	if s := batch(10, 30); s.Behind || s.Lagging != nil {
		t.Fatalf("behind %v, lagging %v", s.Behind, s.Lagging)
	}
	for i, n := range counts() {
		if n != 30 {
			t.Errorf("device %d counts %d, want 30", i, n)
		}
	}
}
