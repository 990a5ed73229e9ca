package servers

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

const sentinelName = "weir"

// Sentinel is a master and a replica, monitored by a Sentinel.
type Sentinel struct {
	watcher *redistest.Sentinel
	servers []*Node
	redis   redis.UniversalClient
}

// NewSentinel starts the servers. The master has an append-only file or keeps nothing across
// restarts; the replica has none.
func NewSentinel(k *Kit, aof bool) *Sentinel {
	master := redistest.New(k, redistest.Options{AOF: aof, OwnClock: true})
	s := &Sentinel{servers: []*Node{{Server: master, AOF: aof}, newReplica(k, master.Addr())}}
	s.watcher = redistest.NewSentinel(k, sentinelName, master, 1)
	s.redis = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: sentinelName, SentinelAddrs: []string{s.watcher.Addr()}})
	k.Cleanup(func() { _ = s.redis.Close() })
	return s
}

// Settings returns the flags that name the Sentinel.
func (s *Sentinel) Settings() []string {
	return []string{"--redis.mode", "sentinel", "--redis.master_name", sentinelName, "--redis.addresses", s.watcher.Addr()}
}

// Client returns a client that asks the Sentinel for the master.
func (s *Sentinel) Client() redis.UniversalClient { return s.redis }

// Master returns the master that the Sentinel names.
func (s *Sentinel) Master(int) *Node {
	address := s.named()
	for _, n := range s.servers {
		if n.Addr() == address {
			return n
		}
	}
	return s.servers[0]
}

// MasterOf returns the master that the Sentinel names.
func (s *Sentinel) MasterOf(string) *Node { return s.Master(0) }

func (s *Sentinel) named() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	address, _ := s.watcher.Master(ctx) // Master is called again if the address matters
	return address
}

// FailOver makes the Sentinel promote the replica. It fails if a failover is under way or the
// replica is not fit to be promoted.
func (s *Sentinel) FailOver(ctx context.Context) error {
	return command(ctx, s.watcher.Addr(), "sentinel", "failover", sentinelName)
}

// Standby returns the other server, which hangs to be cut off.
func (s *Sentinel) Standby(k *Kit, _ int) *Standby {
	master := s.Master(0)
	replica := s.servers[0]
	if replica == master {
		replica = s.servers[1]
	}
	return &Standby{CutOff: replica.Pause, TakeOver: func() { takeOver(k, master, replica, s.FailOver) }}
}

// AwaitServing waits until the Sentinel is content with its master and the other server follows
// that one.
func (s *Sentinel) AwaitServing(k *Kit) {
	testkit.Eventually(k, time.Minute, "the Sentinel's master and its replica", func() (bool, string) {
		if ok, detail := s.watcher.Content(); !ok {
			return false, detail
		}
		master := s.Master(0)
		if !master.isMaster() {
			return false, s.named() + " is not a master"
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
