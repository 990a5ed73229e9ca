package main

import (
	"math/rand/v2"
	"time"
)

var rollProcessors = &fault{name: "rolling restart", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	for _, p := range r.processors {
		p.Stop()
		p.Start()
		pause(random, 0, time.Second)
	}
}}

// One more processor joins the group, and leaves it again.
var scaleProcessors = &fault{name: "processor joins and leaves", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	p := r.newProcess("guest", "processor")
	p.Start()
	pause(random, time.Second, 3*time.Second)
	if random.IntN(2) == 0 {
		p.Kill()
	} else {
		p.Stop()
	}
}}
