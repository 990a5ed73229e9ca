package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// While a slot moves key by key, the replicas of the master that it leaves lack the keys that have moved. They do not
// redirect, so their answers would be too low. They are asked again some time after the slot has moved.
func TestSlotThatMovesIsNotReadFromReplicas(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	c.AddReplica(t, 0)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ReadOnly: true})
	r := newReplicated(t, c.Client(t), client, 3*time.Second)
	m := &hung{Store: r.Store, TB: t, cluster: c, node: c.Nodes[0]}
	devices := []string{} // in two slots of the first master
	b := begin(t, r.Store, transactions)
	for n := int64(0); len(devices) < 2; n++ {
		d := fmt.Sprint("d", n)
		of, err := r.masters.of(t.Context(), r.tags[r.shardOf(d)])
		if err != nil {
			t.Fatal(err)
		}
		if of.address == m.node.Addr() && (len(devices) == 0 || r.shardOf(d) != r.shardOf(devices[0])) {
			devices = append(devices, d)
			fill(b, 0, event{n, d, "u1", 1000, 5})
		}
	}
	apply(t, r.writer, b)
	count := func(device string) (n int64, f state.Freshness) {
		t.Helper()
		states, f, err := r.ReadReplica(t.Context(), []state.Read{{Series: ever, Entity: device}}, nil)
		if err != nil || states[0].Err != nil {
			t.Fatal(err, states[0].Err)
		}
		for _, b := range states[0].Buckets {
			n += b.Value.Num
		}
		return n, f
	}
	await := func(what, device string, replica bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, what, func() (bool, string) {
			n, f := count(device)
			return n == 1 && f.Replica == replica, fmt.Sprintf("%d events, %+v", n, f)
		})
	}
	await("an answer from the replica", devices[0], true)
	slot := m.halfMoved(r.tags[r.shardOf(devices[0])], m.node, c.Nodes[1], 0)
	await("an answer from the master while the slot moves", devices[0], false)
	m.halfMoved(r.tags[r.shardOf(devices[0])], m.node, c.Nodes[1], 1000)
	for range 500 {
		if n, f := count(devices[0]); n != 1 || f.Replica {
			t.Fatalf("once its key has moved: got %d events, %+v; want 1 from the master", n, f)
		}
	}
	if err := redistest.MoveSlot(context.Background(), slot, m.node, c.Nodes[1], c.Nodes...); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		if n, f := count(devices[0]); n != 1 {
			t.Fatalf("once the slot has moved: got %d events, %+v; want 1", n, f)
		}
	}
	await("an answer from the replica about another slot", devices[1], true)
}
