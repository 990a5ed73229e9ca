package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Slots of shards move from one master to another while they are written to.
var moveSlots = &fault{name: "slots moved", lane: redisLane, topologies: []string{"cluster"}, happen: func(r *round, random *rand.Rand) {
	c := r.redis.(*cluster)
	c.settled(r.kit)
	masters := c.masters()
	var servers []*redistest.Server
	for _, n := range masters {
		servers = append(servers, n.Server)
	}
	for range 1 + random.IntN(4) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		tag := keyspace.ShardTag(r.namespace(), random.IntN(r.plan.Shards), r.plan.Shards)
		slot := int(c.redis.ClusterKeySlot(ctx, tag).Val())
		from, to := redistest.SlotOwner(ctx, tag, servers...), servers[random.IntN(len(servers))]
		var err error
		if from != nil && to != from {
			err = redistest.MoveSlot(ctx, slot, from, to, servers...)
		}
		cancel()
		if err != nil {
			r.kit.Fatal(err)
		}
		pause(random, 0, 300*time.Millisecond)
	}
}}
