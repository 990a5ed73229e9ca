package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
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
	*redistest.Server
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

// awaitMended waits until a processor has had the server write its file anew. Redis 7.0 leaves
// in a torn file the beginning of a script's writes, and runs them again at the next start but
// one, a defect of its own: until the file is written anew there must not be another crash. It
// returns whether that was done; a server to which no script has written since its start
// needs none.
func (n *node) awaitMended(k *kit) (mended bool) {
	quiet := time.Now().Add(mendWithin)
	wait(k, time.Minute, "the processors have "+n.Addr()+" write its file anew", func() (bool, string) {
		info, err := n.info("all")
		if err != nil {
			return false, err.Error()
		}
		mended = !strings.Contains(info, "aof_last_rewrite_time_sec:-1") && strings.Contains(info, "aof_rewrite_in_progress:0")
		idle := time.Now().After(quiet) && !applied(info)
		follows := strings.Contains(info, "role:slave") // which writes its file anew for what it is sent
		return mended || idle || follows, info
	})
	return mended
}

// mendWithin is how long processors may take to find a server that was started again.
const mendWithin = 10 * time.Second

// applied says by a server's INFO whether a script has run since its start.
func applied(info string) bool {
	calls := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),.*failed_calls=(\d+)`).FindStringSubmatch(info)
	return calls != nil && calls[1] != calls[2]
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
