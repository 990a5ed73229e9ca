package main

import (
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/workload"
)

var killBroker = &fault{name: "broker killed", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	r.kafka.Kill()
	pause(random, 0, time.Second)
	r.kafka.Start()
}}

var hangBroker = &fault{name: "broker hung", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	r.kafka.Pause()
	pause(random, 0, 4*time.Second)
	r.kafka.Resume()
}}

// The topic of payments gets more partitions. Keys move to others, so that an entity has events in
// several.
var addPartitions = &fault{name: "partitions added", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	r.scenario.Partitions += 1 + random.IntN(2)
	r.kafka.GrowTopic(workload.Payments+r.suffix, r.scenario.Partitions)
}}
