package main

import "math/rand/v2"

// lane is the part of the system that a fault hits. Faults in one lane follow one another; faults
// in different lanes may overlap.
type lane string

const (
	processorLane lane = "processors"
	redisLane     lane = "redis"
	kafkaLane     lane = "kafka"
	// preludeLane holds what happens before the processes start.
	preludeLane lane = "prelude"
	// interludeLane holds the faults that happen once everything is applied.
	interludeLane lane = "interlude"
)

// fault is a failure that is injected while events flow. When happen returns, everything that it
// stopped runs again.
type fault struct {
	name       string
	lane       lane
	topologies []string // nil for all
	happen     func(r *round, random *rand.Rand)
	// forgets says that answers may lack events afterwards, if they say so.
	forgets bool
}

// faults lists all faults; similar ones share a file.
var faults = []*fault{
	killProcessor, hangProcessor, killAllProcessors, rollProcessors, scaleProcessors, reloadDefinitions, loseOwnKeys,
	killRedis, hangRedis, loseReplies, cutConnections, olderCopy, plansBack, tearFile, failOverLate,
	killMaster, hangMaster, failOver, moveSlots,
	killNode, hangNode, killNodes, addNode,
	killBroker, hangBroker, loseBrokerReplies, hangTransaction, addPartitions,
	backlog,
	truncateLog, remakeTopic, startOver, reshard, cutOffReplica, evictKeys, setClock,
}

func faultNames() (names []string) {
	for _, f := range faults {
		names = append(names, f.name)
	}
	return names
}
