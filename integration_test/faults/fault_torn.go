package main

import (
	"math/rand/v2"

	"github.com/weir-stream/weir/integration_test/faults/servers"
)

// The machine of a server loses power: the end of the append-only file is gone, cut anywhere within
// a write.
var tearFile = &fault{name: "torn file", lane: redisLane, topologies: []string{"single", "cluster"}, happen: func(r *round, random *rand.Rand) {
	r.tear(r.redis.Master(random.IntN(3)), random.Int64N(64<<10))
}}

// tear kills a server, cuts up to some bytes off its append-only file, and starts it again.
func (r *round) tear(n *servers.Node, most int64) {
	n.Kill()
	if n.AOF {
		n.TearAOF(most)
	}
	n.Start()
	r.redis.AwaitServing(r.kit)
}
