package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

// redisSide is the Redis of a round.
type redisSide interface {
	// settings are those by which processes reach it.
	settings() []string
	client() redis.UniversalClient
	// nodes are the servers that hold or may come to hold the state.
	nodes() []*node
	// master is one of those that hold it now; n says which where there are several.
	master(n int) *node
	// settled waits until all of it serves.
	settled(k *kit)
}

// node is a server that is known to run or not.
type node struct {
	*testkit.RedisServer
	aof bool

	mu   sync.Mutex
	down bool
}

func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Kill()
	n.down = true
}

func (n *node) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		n.Start()
		n.down = false
	}
}

// info is a section of what a server says of itself.
func (n *node) info(section string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.Info(ctx, section).Result()
}

// rewrite has the server write its file anew. Redis 7.0 leaves in a torn file the beginning of
// a script's writes, and runs them again at the next start but one: a defect of its own.
func (n *node) rewrite(k *kit) {
	client := n.Client(k)
	// A processor that notices the restart has the server do the same, and one rewrite at a time is all a server does.
	wait(k, 30*time.Second, n.Addr()+" begins to write its file anew", func() (bool, string) {
		err := client.BgRewriteAOF(context.Background()).Err()
		return err == nil, fmt.Sprint(err)
	})
	wait(k, 30*time.Second, "the file of "+n.Addr()+" is written anew", func() (bool, string) {
		info, err := n.info("persistence")
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0"), info
	})
}

// linked says whether a replica follows its master; that a master need not.
func (n *node) linked() (bool, string) {
	info, err := n.info("replication")
	if err != nil {
		return false, err.Error()
	}
	ok := strings.Contains(info, "role:master") || strings.Contains(info, "master_link_status:up")
	return ok, fmt.Sprintf("%s: %s", n.Addr(), info)
}

// isMaster says whether the server takes itself for a master.
func (n *node) isMaster() bool {
	info, err := n.info("replication")
	return err == nil && strings.Contains(info, "role:master")
}
