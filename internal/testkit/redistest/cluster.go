package redistest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// Cluster is a Redis Cluster. It has no replicas except those of [Cluster.AddReplica].
type Cluster struct {
	// Nodes are the masters. Each can be killed and started again.
	Nodes []*Server
	// Replicas are the replicas in the order in which they were added. A failover may have promoted
	// some.
	Replicas []*Server

	gone     time.Duration // how long a node is silent before it is given up
	ownClock bool          // each node has a clock of its own
}

const (
	clusterSlots = 16384
	// The port of the cluster bus is a server's port plus this.
	clusterBus = 10_000
)

// NewCluster starts a Redis Cluster of three masters that only this test uses, and returns when all
// masters report it as ok. AOF is on: a master keeps its data over Kill.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return NewClusterOf(t, 3)
}

// NewClusterOf starts a cluster like [NewCluster] of a number of masters.
func NewClusterOf(t testing.TB, masters int) *Cluster {
	t.Helper()
	c := startCluster(t, masters, &Cluster{gone: patience})
	c.announce(t, false)
	return c
}

// NewClusterThatFailsOver starts a cluster like [NewCluster], in which the replica of a master takes over after the
// master was silent for two seconds. Each node has a clock that [Server.SetClock] moves.
func NewClusterThatFailsOver(t testing.TB) *Cluster {
	t.Helper()
	c := startCluster(t, 3, &Cluster{gone: 2 * time.Second, ownClock: true})
	c.announce(t, false)
	return c
}

// startCluster starts a cluster without nodes, which takes more than two seconds: Redis lets no cluster serve earlier. Nodes
// that are silent for longer than gone are given up, and then refuse commands for a while.
func startCluster(t testing.TB, masters int, c *Cluster) *Cluster {
	t.Helper()
	for range masters {
		c.Nodes = append(c.Nodes, c.newNode(t))
	}
	ctx := context.Background()
	first, port, err := net.SplitHostPort(c.Nodes[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range c.Nodes {
		client := node.Client(t)
		from, to := i*clusterSlots/masters, (i+1)*clusterSlots/masters-1
		if err := client.ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := client.ClusterMeet(ctx, first, port).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.WaitOK(t)
	return c
}

func (c *Cluster) announce(t testing.TB, shared bool) {
	t.Helper()
	server.Announce(t, shared, "Redis Cluster from %s at %s", c.Nodes[0].origin, strings.Join(c.Addrs(), ","))
}

func (c *Cluster) newNode(t testing.TB) *Server {
	t.Helper()
	return start(t, Options{
		AOF:      true,
		OwnClock: c.ownClock,
		Config: map[string]string{
			"cluster-enabled": "yes", "cluster-node-timeout": fmt.Sprint(c.gone.Milliseconds()), "cluster-require-full-coverage": "no",
			"repl-ping-replica-period": "1",
		},
	}, clusterBus)
}

// AddMaster adds a master without slots, and returns when all masters know it.
func (c *Cluster) AddMaster(t testing.TB) *Server {
	t.Helper()
	node := c.join(t)
	c.Nodes = append(c.Nodes, node)
	c.WaitOK(t)
	return node
}

// join starts a node that has met the cluster.
func (c *Cluster) join(t testing.TB) *Server {
	t.Helper()
	node := c.newNode(t)
	host, port, err := net.SplitHostPort(c.Nodes[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Client(t).ClusterMeet(context.Background(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	return node
}

// AddReplica adds a replica to a master of Nodes, and returns when all nodes know it and it has the
// master's data.
func (c *Cluster) AddReplica(t testing.TB, master int) *Server {
	t.Helper()
	ctx := context.Background()
	r := c.join(t)
	client := r.Client(t)
	c.Replicas = append(c.Replicas, r)
	c.WaitOK(t)
	id, err := c.Nodes[master].Client(t).ClusterMyID(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	replicating := false
	testkit.Eventually(t, time.Minute, "cluster replica at "+r.addr, func() (bool, string) {
		// It fails until the node knows the master. Repeating it after success would start over.
		if !replicating {
			if err := client.ClusterReplicate(ctx, id).Err(); err != nil {
				return false, err.Error()
			}
			replicating = true
		}
		info, err := client.Info(ctx, "replication").Result()
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(info, "master_link_status:up"), info
	})
	for _, node := range c.Nodes {
		client := node.Client(t)
		testkit.Eventually(t, time.Minute, "the replica seen by "+node.addr, func() (bool, string) {
			// Clients see it only after it has replicated something; a ping is enough.
			slots, err := client.Do(ctx, "cluster", "slots").Result()
			if err != nil {
				return false, err.Error()
			}
			text := fmt.Sprint(slots)
			return strings.Contains(text, strings.Replace(r.addr, ":", " ", 1)), text
		})
	}
	return r
}

// WaitOK waits until every master sees all slots served.
func (c *Cluster) WaitOK(t testing.TB) {
	t.Helper()
	for _, node := range c.Nodes {
		client := node.Client(t)
		testkit.Eventually(t, time.Minute, "cluster seen by "+node.addr, func() (bool, string) {
			info, err := client.ClusterInfo(context.Background()).Result()
			if err != nil {
				return false, err.Error()
			}
			ok := strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_slots_assigned:%d", clusterSlots)) && // the state can be ok without all slots
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes)+len(c.Replicas)))
			return ok, info
		})
	}
}

// Addrs returns the masters' addresses.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, node := range c.Nodes {
		addrs = append(addrs, node.addr)
	}
	return addrs
}

// Client returns a client of the cluster, which is closed when the test ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
