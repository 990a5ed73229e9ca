package main

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"
)

// The topic of payments is deleted and made anew, with other events. An operator has the
// processors go on with it, keeping the state.
var remakeTopic = &fault{name: "topic remade", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	r.ledger.take()
	r.remake(random)
	r.weir("progress", "set", payments+r.suffix, "--to", "start", "--yes")
}}

// The same, and the operator makes the other choice: a namespace that begins anew, from the
// logs that there are.
var beginAnew = &fault{name: "topic remade and namespace begun anew", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	r.remake(random)
	for _, p := range r.all() {
		p.stop()
	}
	r.retired = append(r.retired, r.all()...)
	r.again = "-again"
	r.ledger = newLedger(r)
	r.begin()
}}

// remake deletes the topic of payments and makes it anew, with some events or none.
func (r *round) remake(random *rand.Rand) {
	r.killAllOrNone(random)
	topic := payments + r.suffix
	r.kafka.deleteTopic(topic)
	r.kafka.createTopic(topic, r.plan.Partitions)
	for _, p := range partitionsOf(topic, r.plan.Partitions) {
		r.ledger.diverge(p, 0)
	}
	if random.IntN(2) == 0 {
		r.writer.more(1 + random.IntN(300))
	}
	pause(random, 0, 2*time.Second)
}

// weir runs a command of the binary to its end, again while it fails.
func (r *round) weir(args ...string) {
	args = slices.Concat(args, r.settings(), []string{"--features", r.processors[0].file})
	wait(r.kit, time.Minute, "weir "+args[0], func() (bool, string) {
		out, err := exec.Command(r.trials.binary, args...).CombinedOutput()
		return err == nil, string(out)
	})
}
