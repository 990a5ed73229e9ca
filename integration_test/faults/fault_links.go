package main

import (
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/servers"
	"github.com/weir-stream/weir/internal/testkit"
)

// Redis executes commands, and their replies are lost.
var loseReplies = &fault{name: "replies lost", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	loseThrough(r.redis.(*servers.Single).Link, random)
}}

var cutConnections = &fault{name: "connections cut", lane: redisLane, topologies: []string{"single"}, happen: func(r *round, random *rand.Rand) {
	link := r.redis.(*servers.Single).Link
	link.Cut()
	pause(random, 0, 2*time.Second)
	link.Heal()
}}

var loseBrokerReplies = &fault{name: "broker's replies lost", lane: kafkaLane, happen: func(r *round, random *rand.Rand) {
	loseThrough(r.kafka.Link, random)
}}

// loseThrough drops replies on a link several times, for a moment each.
func loseThrough(link *testkit.FaultyProxy, random *rand.Rand) {
	for range 1 + random.IntN(5) {
		link.LoseReplies()
		pause(random, 5*time.Millisecond, 200*time.Millisecond)
		link.Heal()
		pause(random, 50*time.Millisecond, 300*time.Millisecond)
	}
}
