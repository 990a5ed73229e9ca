package main

import (
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// single is one server behind a proxy that stands for its name.
type single struct {
	link   *testkit.FaultyProxy
	server *node
	redis  *redis.Client
}

// newSingle starts a server with an append-only file, or one that forgets all when it ends.
func newSingle(k *kit, random *rand.Rand) *single {
	aof := random.IntN(3) > 0
	s := &single{server: &node{Server: redistest.New(k, redistest.Options{AOF: aof}), aof: aof}}
	s.link = testkit.Proxy(k, s.server.Addr())
	s.redis = redis.NewClient(&redis.Options{Addr: s.link.Addr()})
	k.Cleanup(func() { _ = s.redis.Close() })
	return s
}

func (s *single) settings() []string            { return []string{"--redis.addresses", s.link.Addr()} }
func (s *single) client() redis.UniversalClient { return s.redis }
func (s *single) nodes() []*node                { return []*node{s.server} }
func (s *single) master(int) *node              { return s.server }

func (s *single) settled(k *kit) {
	wait(k, 30*time.Second, "Redis answers", s.server.linked)
}
