package main

import (
	"context"
	"math/rand/v2"
	"time"
)

var killProcessor = &fault{name: "processor killed", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	p := r.processors[random.IntN(len(r.processors))]
	r.kill(p)
	pause(random, 0, 2*time.Second)
	r.start(p)
}}

// A processor that hangs for longer than the session timeout continues with a batch whose partitions another processor
// owns by then.
var hangProcessor = &fault{name: "processor hung", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	length := time.Duration(random.Int64N(int64(4 * time.Second)))
	r.processors[random.IntN(len(r.processors))].Hang(length)
}}

var killAllProcessors = &fault{name: "all processors killed", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	r.kill(r.processors...)
	pause(random, 0, time.Second)
	r.start(r.processors...)
}}

// Keys of the namespace that are not in its shards are lost, as when their master fails over to a replica that does not
// have them yet, and no processor is left that has read them. A master that is down now keeps them.
var loseOwnKeys = &fault{name: "layout or plans lost", lane: processorLane, topologies: onRedis, happen: func(r *round, random *rand.Rand) {
	r.kill(r.processors...)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, key := range []string{"layout", "plans", "used"} {
		if random.IntN(2) == 0 {
			_ = r.redis.Client().Del(ctx, r.namespace()+":"+key).Err()
		}
	}
	r.start(r.processors...)
}}
