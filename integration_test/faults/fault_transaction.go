package main

import (
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/workload"
)

// A producer writes in a transaction and hangs: later records wait until the broker aborts the
// transaction, and none of its records count.
var hangTransaction = &fault{name: "transaction hung", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	g := workload.NewGenerator(random, r.scenario.Options)
	events := make([]workload.Message, 1+random.IntN(50))
	for i := range events {
		events[i] = g.Next()
	}
	timeout := time.Second + time.Duration(random.Int64N(int64(4*time.Second)))
	release := r.writer.hang(events, timeout)
	time.Sleep(timeout)
	release()
}}
