package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/store/redis/keyspace"
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

// The layout of the namespace is lost, as when its master fails over to a replica that does not have it yet, and no
// processor is left that has read it. A master that is down now keeps it.
var loseLayout = &fault{name: "layout lost", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	r.kill(r.processors...)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = r.redis.Client().Del(ctx, keyspace.LayoutKey(r.namespace())).Err()
	r.start(r.processors...)
}}
