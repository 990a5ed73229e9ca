package servers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Cluster is a Redis Cluster of three masters with a replica each, shared by all rounds.
type Cluster struct {
	servers []*Node
	served  int                  // number of masters when all is well
	redis   *redis.ClusterClient // the client of the round
}

// NewCluster starts the servers, which stop when the kit is closed.
func NewCluster(k *Kit) *Cluster {
	started := redistest.NewClusterThatFailsOver(k)
	for master := range started.Nodes {
		started.AddReplica(k, master)
	}
	c := &Cluster{served: len(started.Nodes)}
	for _, server := range slices.Concat(started.Nodes, started.Replicas) {
		c.servers = append(c.servers, &Node{Server: server, AOF: true})
	}
	return c
}

// Empty deletes all keys and creates a client for a round.
func (c *Cluster) Empty(k *Kit) {
	c.AwaitServing(k)
	c.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addresses()})
	k.Cleanup(func() { _ = c.redis.Close() })
	err := c.redis.ForEachMaster(context.Background(), func(ctx context.Context, m *redis.Client) error { return m.FlushAll(ctx).Err() })
	if err != nil {
		k.Fatal(err)
	}
	// A shard that moves to a server which has evicted keys in a round before may have lost some, as far as anyone knows.
	err = c.redis.ForEachShard(context.Background(), func(ctx context.Context, n *redis.Client) error { return n.ConfigResetStat(ctx).Err() })
	if err != nil {
		k.Fatal(err)
	}
}

func (c *Cluster) addresses() (all []string) {
	for _, n := range c.servers {
		all = append(all, n.Addr())
	}
	return all
}

// Settings returns the flags that name all servers.
func (c *Cluster) Settings() []string {
	return []string{"--redis.mode", "cluster", "--redis.addresses", strings.Join(c.addresses(), ",")}
}

// Client returns the client of the round; see [Cluster.Empty].
func (c *Cluster) Client() redis.UniversalClient { return c.redis }

// Master returns the nth of the current masters.
func (c *Cluster) Master(n int) *Node { return c.nth(n, c.masters()) }

// MasterOf returns the master that serves the slot of a key.
func (c *Cluster) MasterOf(key string) *Node {
	masters := c.masters()
	serves := func(n *Node) bool { return redistest.SlotOwner(context.Background(), key, n.Server) != nil }
	return c.nth(max(0, slices.IndexFunc(masters, serves)), masters)
}

// Replica returns the nth of the servers that are not masters now.
func (c *Cluster) Replica(n int) *Node {
	masters := c.masters()
	return c.nth(n, slices.DeleteFunc(slices.Clone(c.servers), func(s *Node) bool { return slices.Contains(masters, s) }))
}

func (c *Cluster) nth(n int, some []*Node) *Node {
	if len(some) == 0 {
		return c.servers[0]
	}
	return some[n%len(some)]
}

func (c *Cluster) masters() (all []*Node) {
	for _, n := range c.servers {
		if n.isMaster() {
			all = append(all, n)
		}
	}
	return all
}

// FailOver promotes a replica without the consent of its master, by a vote of the other masters or
// at once; writes that the replica lacks are lost. It fails if the replica is not fit to be
// promoted.
func (c *Cluster) FailOver(ctx context.Context, replica *Node, vote bool) error {
	how := "takeover"
	if vote {
		how = "force"
	}
	return command(ctx, replica.Addr(), "cluster", "failover", how)
}

// Standby returns the nth replica, which hangs to be cut off.
func (c *Cluster) Standby(k *Kit, n int) *Standby {
	replica := c.Replica(n)
	i := slices.IndexFunc(c.servers, replica.replicaOf)
	if i < 0 {
		k.Fatalf("%s follows no master", replica.Addr())
	}
	master := c.servers[i]
	return &Standby{CutOff: replica.Pause, TakeOver: func() {
		takeOver(k, master, replica, func(ctx context.Context) error { return c.FailOver(ctx, replica, false) })
	}}
}

// MoveSlot moves the slot of a hash tag to the nth of the other masters while it is written to. As if it had so many keys that
// this takes a while, no key moves before one of them was compacted, or a time is over. The key last moves after all others, if
// there is one: a receiver that then loses some of the keys loses that one too. Else no crash can take the keys from the receiver
// in the end: one that loses some of the keys, and not others, is beyond what Weir can repair, see docs/scale.md. It returns the
// receiver, nil if nothing was moved because the slot has no owner at the moment.
func (c *Cluster) MoveSlot(ctx context.Context, tag string, n int, last string) (receiver *Node, err error) {
	nodes := c.masters()
	var masters []*redistest.Server
	for _, node := range nodes {
		masters = append(masters, node.Server)
	}
	from := redistest.SlotOwner(ctx, tag, masters...)
	if from == nil || len(masters) < 2 {
		return nil, nil
	}
	others := slices.DeleteFunc(nodes, func(n *Node) bool { return n.Server == from })
	slot := int(c.redis.ClusterKeySlot(ctx, tag).Val())
	await := func() { awaitCompaction(ctx, from, slot) }
	to := others[n%len(others)]
	if err := redistest.MoveSlotSlowly(ctx, slot, await, last, from, to.Server, masters...); err != nil {
		return nil, err
	}
	if last != "" {
		return to, nil
	}
	return to, secure(ctx, to.Server)
}

// secure returns once a server's replica has its data, and its append-only file holds them out of reach of a torn end.
func secure(ctx context.Context, server *redistest.Server) error {
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	if err := client.Wait(ctx, 1, 10*time.Second).Err(); err != nil {
		return err
	}
	if err := awaitFile(ctx, client); err != nil { // a rewrite that began earlier does not have them
		return err
	}
	if err := client.BgRewriteAOF(ctx).Err(); err != nil {
		return err
	}
	return awaitFile(ctx, client)
}

// awaitFile waits until a server neither rewrites its append-only file nor is about to.
func awaitFile(ctx context.Context, client *redis.Client) error {
	for {
		info, err := client.InfoMap(ctx, "persistence").Result()
		if err != nil {
			return err
		}
		if file := info["Persistence"]; file["aof_rewrite_in_progress"] == "0" && file["aof_rewrite_scheduled"] == "0" {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// compactedWithin bounds the wait for a compaction in a slot that moves: it may have no events at the moment.
const compactedWithin = 2 * time.Second

// awaitCompaction waits until a key of a slot has become shorter, or is gone.
func awaitCompaction(ctx context.Context, server *redistest.Server, slot int) {
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, compactedWithin)
	defer cancel()
	var before map[string]int64
	for ctx.Err() == nil {
		now := lengths(ctx, client, slot)
		for key, length := range before {
			if now[key] < length {
				return
			}
		}
		before = now
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lengths returns the lengths of the state keys in a slot.
func lengths(ctx context.Context, client *redis.Client, slot int) map[string]int64 {
	pipe := client.Pipeline()
	found := map[string]*redis.IntCmd{}
	for _, key := range client.ClusterGetKeysInSlot(ctx, slot, 1000).Val() {
		found[key] = pipe.StrLen(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // the progress is no string
	all := map[string]int64{}
	for key, length := range found {
		all[key] = length.Val()
	}
	return all
}

// AwaitServing waits until all servers report the cluster as ok and each replica follows its
// master.
func (c *Cluster) AwaitServing(k *Kit) {
	testkit.Eventually(k, time.Minute, "the cluster is ok", func() (bool, string) {
		masters := 0
		for _, n := range c.servers {
			info, err := c.info(n)
			if err != nil {
				return false, err.Error()
			}
			if !strings.Contains(info, "cluster_state:ok") {
				return false, n.Addr() + ": " + info
			}
			if ok, detail := n.linked(); !ok {
				return false, detail
			}
			if n.isMaster() {
				masters++
			}
		}
		return masters == c.served, "masters: " + strconv.Itoa(masters)
	})
}

func (c *Cluster) info(n *Node) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.ClusterInfo(ctx).Result()
}
