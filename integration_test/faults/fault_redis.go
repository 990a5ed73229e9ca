package main

import (
	"math/rand/v2"
	"time"
)

// A server without an append-only file restarts empty.
var killRedis = &fault{name: "redis killed", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(0)
	n.Kill()
	pause(random, 0, 2*time.Second)
	n.Start()
}}

var hangRedis = &fault{name: "redis hung", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(0)
	n.Pause()
	pause(random, 0, 4*time.Second)
	n.Resume()
}}
