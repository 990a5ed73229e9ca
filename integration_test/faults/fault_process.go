package main

import (
	"math/rand/v2"
	"time"
)

var killProcessor = &fault{name: "processor killed", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	p := r.processors[random.IntN(len(r.processors))]
	p.kill()
	pause(random, 0, 2*time.Second)
	p.start()
}}

// A hang longer than the group's session is one that wakes up with a batch in its hands when
// another has its partitions.
var hangProcessor = &fault{name: "processor hung", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	length := time.Duration(random.Int64N(int64(4 * time.Second)))
	r.processors[random.IntN(len(r.processors))].hang(length)
}}

var killAllProcessors = &fault{name: "all processors killed", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	for _, p := range r.processors {
		p.kill()
	}
	pause(random, 0, time.Second)
	for _, p := range r.processors {
		p.start()
	}
}}
