package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/servers"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Slots of shards move from one master to another while they are written to, and while keys in them are compacted.
var moveSlots = &fault{name: "slots moved", lane: redisLane, topologies: []string{"cluster"}, happen: func(r *round, random *rand.Rand) {
	c := r.redis.(*servers.Cluster)
	c.AwaitServing(r.kit)
	for range 2 + random.IntN(4) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		tag := keyspace.ShardTag(r.namespace(), random.IntN(r.scenario.Shards), r.scenario.Shards)
		err := c.MoveSlot(ctx, tag, random.IntN(2))
		cancel()
		if err != nil {
			r.kit.Fatal(err)
		}
		pause(random, 0, 300*time.Millisecond)
	}
}}
