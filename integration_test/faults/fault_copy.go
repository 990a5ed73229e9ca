package main

import (
	"math/rand/v2"
	"time"
)

// A server is restored from a copy that is some seconds old.
var olderCopy = &fault{name: "older copy", lane: redisLane, topologies: []string{"single", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(random.IntN(3))
	old := n.SaveCopy()
	pause(random, 0, 4*time.Second)
	n.RestoreCopy(old)
	r.redis.AwaitServing(r.kit)
	r.awaitMended(n)
}}
