package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// The server fails over to a replica whose link broke before: it lacks the last writes.
var failOverLate = &fault{name: "failover that loses writes", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	s := r.redis.(*single)
	replication := testkit.Proxy(r.kit, s.server.Addr())
	replica := &node{Server: redistest.NewReplica(r.kit, replication.Addr())}
	pause(random, 0, 500*time.Millisecond)
	replication.Cut()
	pause(random, 0, 2*time.Second)
	s.server.kill()
	replica.Promote()
	s.server = replica
	s.link.Retarget(replica.Addr())
}}

// The master dies, and comes back before or after another has taken its place.
var killMaster = &fault{name: "master killed", lane: redisLane, topologies: []string{"sentinel", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.master(random.IntN(3))
	n.kill()
	pause(random, 0, 5*time.Second)
	n.start()
	r.redis.settled(r.kit)
	r.awaitMended(n)
}}

// The master hangs. When it wakes up another may have its place, which it learns only after a
// while: what it takes until then is lost.
var hangMaster = &fault{name: "master hung", lane: redisLane, topologies: []string{"sentinel", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.master(random.IntN(3))
	n.Pause()
	pause(random, 0, 6*time.Second)
	n.Resume()
	r.redis.settled(r.kit)
}}

// An operator has a replica take over: in a cluster without asking the master, which loses what
// the replica lacks.
var failOver = &fault{name: "failover", lane: redisLane, topologies: []string{"sentinel", "cluster"}, happen: func(r *round, random *rand.Rand) {
	var how []any
	var target string
	switch side := r.redis.(type) {
	case *sentinel:
		target, how = side.watcher.Addr(), []any{"sentinel", "failover", sentinelName}
	case *cluster:
		for _, i := range random.Perm(len(side.servers)) {
			if n := side.servers[i]; !n.isMaster() {
				target, how = n.Addr(), []any{"cluster", "failover", []string{"takeover", "force"}[random.IntN(2)]}
			}
		}
	}
	client := redis.NewClient(&redis.Options{Addr: target, Protocol: 2})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := client.Do(ctx, how...).Err(); err != nil {
		return // there is no good replica at this moment, or a failover under way
	}
	pause(random, 200*time.Millisecond, time.Second)
	r.redis.settled(r.kit)
}}
