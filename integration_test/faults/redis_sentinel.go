package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

const sentinelName = "weir"

// sentinel is a master and a replica that a Sentinel watches.
type sentinel struct {
	watcher *redistest.Sentinel
	servers []*node
	redis   redis.UniversalClient
}

func newSentinel(k *kit, random *rand.Rand) *sentinel {
	aof := random.IntN(2) == 0
	master := redistest.New(k, redistest.Options{AOF: aof})
	replica := redistest.NewReplica(k, master.Addr())
	s := &sentinel{servers: []*node{{Server: master, aof: aof}, {Server: replica}}}
	s.watcher = redistest.NewSentinel(k, sentinelName, master, 1)
	s.redis = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: sentinelName, SentinelAddrs: []string{s.watcher.Addr()}})
	k.Cleanup(func() { _ = s.redis.Close() })
	return s
}

func (s *sentinel) settings() []string {
	return []string{"--redis.mode", "sentinel", "--redis.master_name", sentinelName, "--redis.addresses", s.watcher.Addr()}
}

func (s *sentinel) client() redis.UniversalClient { return s.redis }
func (s *sentinel) nodes() []*node                { return s.servers }

// master is the one that the Sentinel names.
func (s *sentinel) master(int) *node {
	address := s.named()
	for _, n := range s.servers {
		if n.Addr() == address {
			return n
		}
	}
	return s.servers[0]
}

func (s *sentinel) named() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	address, _ := s.watcher.Master(ctx) // asked again where it matters
	return address
}

// settled waits until the master that the Sentinel names is one that it will not replace, and
// the other follows it.
func (s *sentinel) settled(k *kit) {
	wait(k, time.Minute, "the Sentinel's master and its replica", func() (bool, string) {
		if ok, detail := s.watcher.Content(); !ok {
			return false, detail
		}
		master := s.master(0)
		if !master.isMaster() {
			return false, s.named() + " is no master"
		}
		for _, n := range s.servers {
			if n == master {
				continue
			}
			if n.isMaster() {
				return false, n.Addr() + " takes itself for one, too"
			}
			if ok, detail := n.linked(); !ok {
				return false, detail
			}
		}
		return true, ""
	})
}
