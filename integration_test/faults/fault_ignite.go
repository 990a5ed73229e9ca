package main

import (
	"math/rand/v2"
	"time"
)

// onRedis are the topologies of faults that reach into Redis.
var onRedis = []string{"single", "sentinel", "cluster"}

var onIgnite = []string{"ignite"}

// killNode kills a node: others have the copies. No other node fails before the copies are complete again.
var killNode = &fault{name: "ignite node killed", lane: redisLane, topologies: onIgnite, happen: func(r *round, random *rand.Rand) {
	n := r.ignite.Nodes[random.IntN(len(r.ignite.Nodes))]
	r.check(n.Kill())
	pause(random, 0, 2*time.Second)
	r.check(n.Start())
	r.ignite.AwaitCopies(r.kit)
}}

// addNode adds a node, to which partitions move, and kills it again some time after it has them.
var addNode = &fault{name: "ignite node added", lane: redisLane, topologies: onIgnite, happen: func(r *round, random *rand.Rand) {
	n := r.ignite.Spares[0]
	r.check(n.Start())
	r.ignite.AwaitCopies(r.kit)
	pause(random, 0, 3*time.Second)
	r.check(n.Kill())
	r.ignite.AwaitCopies(r.kit)
}}

// hangNode stops a node from answering, for so long that the others may go on without it. It then ends itself.
var hangNode = &fault{name: "ignite node hung", lane: redisLane, topologies: onIgnite, happen: func(r *round, random *rand.Rand) {
	n := r.ignite.Nodes[random.IntN(len(r.ignite.Nodes))]
	r.check(n.Hang())
	pause(random, 0, 6*time.Second)
	r.check(n.Resume())
	r.ignite.AwaitCopies(r.kit)
}}

// killNodes kills all nodes at once: the state is lost, and read again.
var killNodes = &fault{name: "ignite killed", lane: redisLane, topologies: onIgnite, happen: func(r *round, random *rand.Rand) {
	for _, n := range r.ignite.Nodes {
		r.check(n.Kill())
	}
	pause(random, 0, 2*time.Second)
	for _, n := range r.ignite.Nodes {
		r.check(n.Start())
	}
	r.ignite.AwaitCopies(r.kit)
}}

// check reports the failure of a fault.
func (r *round) check(err error) {
	if err != nil {
		r.kit.Error(err)
	}
}
