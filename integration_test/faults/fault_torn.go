package main

import "math/rand/v2"

// The machine of a server loses power: the end of the append-only file is gone, cut anywhere within
// a write.
var tearFile = &fault{name: "torn file", lane: redisLane, topologies: []string{"single", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(random.IntN(3))
	n.Kill()
	if n.AOF {
		n.TearAOF(random.Int64N(64 << 10))
	}
	n.Start()
	r.redis.AwaitServing(r.kit)
	r.awaitMended(n)
}}
