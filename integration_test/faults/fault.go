package main

import "math/rand/v2"

// lane is what a fault befalls. Faults of one lane come one after the other, those of
// different lanes whenever it happens, also at once.
type lane string

const (
	processorLane lane = "processors"
	redisLane     lane = "redis"
	kafkaLane     lane = "kafka"
	// interludeLane is for what happens once all is applied.
	interludeLane lane = "interlude"
)

// fault is something bad that happens while events flow. When happen returns, all that it
// stopped runs again.
type fault struct {
	name       string
	lane       lane
	topologies []string // nil for all
	happen     func(r *round, random *rand.Rand)
}

// faults are all there are, each in a file of its own.
var faults = []*fault{
	killProcessor, hangProcessor, killAllProcessors, rollProcessors, scaleProcessors, reloadDefinitions,
	killRedis, hangRedis, loseReplies, cutConnections, olderCopy, tearFile, failOverLate,
	killMaster, hangMaster, failOver, moveSlots,
	killBroker, hangBroker, loseBrokerReplies, hangTransaction,
	truncateLog, remakeTopic, beginAnew,
}

func faultNames() (names []string) {
	for _, f := range faults {
		names = append(names, f.name)
	}
	return names
}
