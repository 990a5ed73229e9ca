package main

import (
	"math/rand/v2"
	"time"
)

// A server is put back to a copy of some seconds ago.
var olderCopy = &fault{name: "older copy", lane: redisLane, topologies: []string{"single", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.master(random.IntN(3))
	old := n.SaveCopy()
	pause(random, 0, 4*time.Second)
	n.RestoreCopy(old)
	r.redis.settled(r.kit)
	r.awaitMended(n)
}}
