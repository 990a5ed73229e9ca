package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/servers"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Slots of shards move from one master to another while they are written to, and while keys in them are compacted. Where the
// progress moves last, the receiver may lose the last keys that it has got.
var moveSlots = &fault{name: "slots moved", lane: redisLane, topologies: []string{"cluster"}, happen: func(r *round, random *rand.Rand) {
	c := r.redis.(*servers.Cluster)
	c.AwaitServing(r.kit)
	for range 2 + random.IntN(4) {
		tag := keyspace.ShardTag(r.namespace(), random.IntN(r.scenario.Shards), r.scenario.Shards)
		last, torn := "", false
		if random.IntN(2) == 0 {
			last, torn = keyspace.ProgressKey(tag), random.IntN(2) == 0
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		receiver, err := c.MoveSlot(ctx, tag, random.IntN(2), last)
		cancel()
		if err != nil {
			r.kit.Fatal(err)
		}
		if torn && receiver != nil {
			r.tear(receiver, random.Int64N(16<<10))
			r.happened("receiver of a slot torn")
			return // its replica may be about to take its place
		}
		pause(random, 0, 300*time.Millisecond)
	}
}}
