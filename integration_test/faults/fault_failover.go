package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/servers"
)

// The server fails over to a replica whose link broke before, so that the last writes are lost.
var failOverLate = &fault{name: "failover that loses writes", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	replica := r.redis.Standby(r.kit, 0)
	pause(random, 0, 500*time.Millisecond)
	replica.CutOff()
	pause(random, 0, 2*time.Second)
	replica.TakeOver()
}}

// The master dies, and returns before or after its replica is promoted.
var killMaster = &fault{name: "master killed", lane: redisLane, topologies: []string{"sentinel", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(random.IntN(3))
	n.Kill()
	pause(random, 0, 5*time.Second)
	n.Start()
	r.redis.AwaitServing(r.kit)
}}

// The master hangs. When it continues, a replica may have been promoted. The master learns of that only after a while,
// and the writes that it accepts until then are lost.
var hangMaster = &fault{name: "master hung", lane: redisLane, topologies: []string{"sentinel", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(random.IntN(3))
	n.Pause()
	pause(random, 0, 6*time.Second)
	n.Resume()
	r.redis.AwaitServing(r.kit)
}}

// An operator promotes a replica. In a cluster this happens without the master's consent, and the
// writes that the replica lacks are lost.
var failOver = &fault{name: "failover", lane: redisLane, topologies: []string{"sentinel", "cluster"}, happen: func(r *round, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var err error
	switch side := r.redis.(type) {
	case *servers.Sentinel:
		err = side.FailOver(ctx)
	case *servers.Cluster:
		err = side.FailOver(ctx, side.Replica(random.IntN(3)), random.IntN(2) == 0)
	}
	if err != nil {
		return // no healthy replica at this moment, or a failover is under way
	}
	pause(random, 200*time.Millisecond, time.Second)
	r.redis.AwaitServing(r.kit)
}}
