package main

import (
	"math/rand/v2"
	"time"
)

// The processes load the next version of the definitions one after the other; the API may come first, last or in
// between. While there is a backlog, all processors are killed before and start with the next version, so that its plan
// takes partitions in the middle of a batch.
var reloadDefinitions = &fault{name: "definitions reloaded", lane: processorLane, happen: func(r *round, random *rand.Rand) {
	r.version++
	all := r.all()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if r.backlog != nil {
		r.kill(r.processors...)
	}
	for _, p := range all {
		p.Put(r.definitions(r.version))
		pause(random, 0, time.Second)
	}
	if r.backlog != nil {
		r.start(r.processors...)
	}
}}
