package main

import (
	"math/rand/v2"
	"time"
)

// A server without an append-only file comes back with nothing.
var killRedis = &fault{name: "redis killed", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.master(0)
	n.kill()
	pause(random, 0, 2*time.Second)
	n.start()
	r.awaitMended(n)
}}

// awaitMended waits for a server's file where it keeps one; see [node.awaitMended].
func (r *round) awaitMended(n *node) {
	if n.aof && n.awaitMended(r.kit) {
		r.happened("file written anew by a processor")
	}
}

var hangRedis = &fault{name: "redis hung", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.master(0)
	n.Pause()
	pause(random, 0, 4*time.Second)
	n.Resume()
}}
