package servers

import (
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Single is one server behind a proxy that stands in for its DNS name.
type Single struct {
	Link   *testkit.FaultyProxy // the proxy
	server *Node
	redis  *redis.Client
}

// NewSingle starts a server that has an append-only file or keeps nothing across restarts.
func NewSingle(k *Kit, aof bool) *Single {
	s := &Single{server: &Node{Server: redistest.New(k, redistest.Options{AOF: aof, OwnClock: true}), AOF: aof}}
	s.Link = testkit.Proxy(k, s.server.Addr())
	s.redis = redis.NewClient(&redis.Options{Addr: s.Link.Addr()})
	k.Cleanup(func() { _ = s.redis.Close() })
	return s
}

// Settings returns the flags that name the proxy.
func (s *Single) Settings() []string { return []string{"--redis.addresses", s.Link.Addr()} }

// Client returns a client that connects through the proxy.
func (s *Single) Client() redis.UniversalClient { return s.redis }

// Master returns the server behind the proxy.
func (s *Single) Master(int) *Node { return s.server }

// MasterOf returns the server behind the proxy.
func (s *Single) MasterOf(string) *Node { return s.server }

// Standby starts a replica that nobody but the master knows. To take over, it is promoted, and the name points at it.
func (s *Single) Standby(k *Kit, _ int) *Standby {
	replication := testkit.Proxy(k, s.server.Addr())
	replica := newReplica(k, replication.Addr())
	return &Standby{CutOff: replication.Cut, TakeOver: func() {
		s.server.Kill()
		replica.Promote()
		s.server = replica
		s.Link.Retarget(replica.Addr())
	}}
}

// AwaitServing waits until the server answers.
func (s *Single) AwaitServing(k *Kit) {
	testkit.Eventually(k, time.Minute, "Redis answers", s.server.linked)
}
