package main

import (
	"math/rand/v2"

	"github.com/weir-stream/weir/integration_test/faults/workload"
)

// The topic of payments gets more partitions. Keys move to others, so that an entity has events in
// several.
var addPartitions = &fault{name: "partitions added", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	r.scenario.Partitions += 1 + random.IntN(2)
	r.kafka.GrowTopic(workload.Payments+r.suffix, r.scenario.Partitions)
}}
