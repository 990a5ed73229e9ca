package main

import (
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/servers"
)

// A server without an append-only file restarts empty.
var killRedis = &fault{name: "redis killed", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(0)
	n.Kill()
	pause(random, 0, 2*time.Second)
	n.Start()
	r.awaitMended(n)
}}

// awaitMended waits until a server has rewritten its append-only file; see
// [servers.Node.AwaitMended].
func (r *round) awaitMended(n *servers.Node) {
	if n.AwaitMended(r.kit) {
		r.happened("file rewritten by a processor")
	}
}

var hangRedis = &fault{name: "redis hung", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(0)
	n.Pause()
	pause(random, 0, 4*time.Second)
	n.Resume()
}}
