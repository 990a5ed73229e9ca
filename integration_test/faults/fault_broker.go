package main

import (
	"math/rand/v2"
	"time"
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
