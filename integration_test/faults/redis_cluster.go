package main

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// cluster is a Redis Cluster of three masters with a replica each, for all rounds.
type cluster struct {
	*redistest.Cluster
	kit     *kit
	servers []*node
	redis   *redis.ClusterClient // of the round
}

func newCluster(k *kit) *cluster {
	c := &cluster{Cluster: redistest.NewCluster(k), kit: k}
	for master := range c.Nodes {
		c.AddReplica(k, master)
	}
	for _, server := range append(c.Nodes[:len(c.Nodes):len(c.Nodes)], c.Replicas...) {
		c.servers = append(c.servers, &node{Server: server, aof: true})
	}
	return c
}

// begin makes the cluster empty for a round.
func (c *cluster) begin(k *kit) {
	c.settled(k)
	c.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.addresses()})
	k.Cleanup(func() { _ = c.redis.Close() })
	err := c.redis.ForEachMaster(context.Background(), func(ctx context.Context, m *redis.Client) error { return m.FlushAll(ctx).Err() })
	if err != nil {
		k.Fatal(err)
	}
}

func (c *cluster) addresses() (all []string) {
	for _, n := range c.servers {
		all = append(all, n.Addr())
	}
	return all
}

func (c *cluster) settings() []string {
	return []string{"--redis.mode", "cluster", "--redis.addresses", strings.Join(c.addresses(), ",")}
}

func (c *cluster) client() redis.UniversalClient { return c.redis }
func (c *cluster) nodes() []*node                { return c.servers }

// master is the nth of those that are masters now.
func (c *cluster) master(n int) *node {
	masters := c.masters()
	if len(masters) == 0 {
		return c.servers[0]
	}
	return masters[n%len(masters)]
}

func (c *cluster) masters() (all []*node) {
	for _, n := range c.servers {
		if n.isMaster() {
			all = append(all, n)
		}
	}
	return all
}

// settled waits until all servers call the cluster ok, and each replica follows its master.
func (c *cluster) settled(k *kit) {
	wait(k, time.Minute, "the cluster is ok", func() (bool, string) {
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
		return masters == len(c.Nodes), "masters: " + itoa(masters)
	})
}

func (c *cluster) info(n *node) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.ClusterInfo(ctx).Result()
}
