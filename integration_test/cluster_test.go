package integration_test

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
)

// The same over three masters: each shard fails and goes back in time with its
// own master, whatever the others do.
func TestExactlyOnceOnCluster(t *testing.T) {
	events := fewer(60_000)
	cluster := testkit.RedisCluster(t)
	s := newScene(t, cluster.Client(t), "--redis.mode", "cluster", "--redis.addresses", strings.Join(cluster.Addrs(), ","))
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	var old testkit.RedisCopy
	s.flow(generate.New(seed, stream(200)), events,
		fault{"a processor is killed and replaced", func() {
			s.kill(first)
			first = s.start("processor")
		}},
		fault{"a copy of one master is taken", func() { old = cluster.Nodes[1].SaveCopy() }},
		fault{"a master is killed and started from its AOF", func() {
			s.kill(cluster.Nodes[0])
			cluster.Nodes[0].Start()
			cluster.WaitOK(t)
		}},
		fault{"one master is put back to the copy", func() {
			awaitShared(t, first, second)
			before := s.rewinds()
			cluster.Nodes[1].RestoreCopy(old)
			cluster.WaitOK(t)
			s.awaitRewind(before)
		}},
		fault{"a master and a processor are killed and started", func() {
			s.kill(cluster.Nodes[2], second)
			cluster.Nodes[2].Start()
			second = s.start("processor")
		}},
	)
	s.finish(api, events)
}
