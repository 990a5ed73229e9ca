package main

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/internal/testkit"
)

// The topic of payments is deleted and created again, with other events. An operator lets the processors continue with
// it and keep the state.
var remakeTopic = &fault{name: "topic recreated", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	r.ledger.take()
	r.remake(random)
	r.weir("progress", "set", workload.Payments+r.suffix, "--to", "start", "--yes")
}}

// As above, but the operator chooses a new namespace, which starts from the logs that exist.
var startOver = &fault{name: "topic recreated and namespace started over", lane: interludeLane, topologies: onRedis, happen: func(r *round, random *rand.Rand) {
	r.remake(random)
	for _, p := range r.all() {
		p.Stop()
	}
	r.retired = append(r.retired, r.all()...)
	r.again = "-again"
	r.ledger = newLedger(r)
	r.begin()
}}

// remake deletes the topic of payments and creates it again, empty or with some events.
func (r *round) remake(random *rand.Rand) {
	r.killAllOrNone(random)
	topic := workload.Payments + r.suffix
	r.kafka.DeleteTopic(topic)
	r.kafka.CreateTopic(topic, r.scenario.Partitions)
	for _, p := range partitionsOf(topic, r.scenario.Partitions) {
		r.ledger.diverge(p, 0)
	}
	if random.IntN(2) == 0 {
		r.writer.more(1 + random.IntN(300))
	}
	pause(random, 0, 2*time.Second)
}

// weir runs a command of the binary, and repeats it until it succeeds.
func (r *round) weir(args ...string) {
	args = slices.Concat(args, r.settings(), []string{"--features", r.processors[0].File})
	testkit.Eventually(r.kit, time.Minute, "weir "+args[0], func() (bool, string) {
		out, err := exec.Command(r.trials.binary, args...).CombinedOutput()
		return err == nil, string(out)
	})
}
