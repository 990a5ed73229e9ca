package testkit

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of three masters without replicas.
type Cluster struct {
	// Nodes are the masters. Each can be killed and started again.
	Nodes []*RedisServer
}

const (
	clusterMasters = 3
	clusterSlots   = 16384
	// A cluster's bus is at its port plus this.
	clusterBus = 10_000
)

// RedisCluster starts a Redis Cluster of the test's own and returns when all
// masters call it ok. AOF is on: a master keeps its data over Kill.
func RedisCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range clusterMasters {
		c.Nodes = append(c.Nodes, newRedis(t, ephemeralPorts-clusterBus, RedisOptions{
			AOF:    true,
			Config: map[string]string{"cluster-enabled": "yes", "cluster-node-timeout": "2000"},
		}))
	}
	ctx := context.Background()
	first, port, err := net.SplitHostPort(c.Nodes[0].addr)
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range c.Nodes {
		client := node.Client(t)
		from, to := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
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
	announce(t, false, "Redis Cluster from %s at %s", c.Nodes[0].origin, strings.Join(c.Addrs(), ","))
	return c
}

// WaitOK waits until every master sees all slots served.
func (c *Cluster) WaitOK(t testing.TB) {
	t.Helper()
	for _, node := range c.Nodes {
		client := node.Client(t)
		Eventually(t, time.Minute, "cluster seen by "+node.addr, func() (bool, string) {
			info, err := client.ClusterInfo(context.Background()).Result()
			if err != nil {
				return false, err.Error()
			}
			ok := strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", clusterMasters))
			return ok, info
		})
	}
}

// Addrs are the masters' addresses.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, node := range c.Nodes {
		addrs = append(addrs, node.addr)
	}
	return addrs
}

// Client returns a client of the cluster's that is closed when the test ends.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
