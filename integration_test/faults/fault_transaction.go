package main

import (
	"math/rand/v2"
	"time"
)

// A producer writes in a transaction and hangs: what comes behind waits until the broker rolls
// it back, and none of it counts.
var hangTransaction = &fault{name: "transaction hung", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	g := newGenerator(random, r.plan.Options)
	events := make([]message, 1+random.IntN(50))
	for i := range events {
		events[i] = g.next()
	}
	timeout := time.Second + time.Duration(random.Int64N(int64(4*time.Second)))
	release := r.writer.hang(events, timeout)
	time.Sleep(timeout)
	release()
}}
