package main

import "math/rand/v2"

// The machine of a server loses its power: the end of its append-only file is gone, from
// anywhere in a write on.
var tearFile = &fault{name: "torn file", lane: redisLane, topologies: []string{"single", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.master(random.IntN(3))
	n.kill()
	if n.aof {
		n.TearAOF(random.Int64N(64 << 10))
	}
	n.start()
	r.redis.settled(r.kit)
	r.awaitMended(n)
}}
