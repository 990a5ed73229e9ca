package main

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

var topologies = []string{"single", "sentinel", "cluster"}

// plan is all that a seed draws of a round. Only the moments depend on the machine.
type plan struct {
	Seed       uint64
	Topology   string
	Partitions int // of the topic of payments
	Shards     int
	Processors int
	BatchMax   int // events of a batch

	Events  int
	Length  time.Duration // of the time in which events are written and faults happen
	Options eventOptions

	// Versions of the definitions, the first at the beginning, each of the others taken by a
	// fault. Of more than one, Always are the features that all have alike.
	Versions [][]feature
	Late     string // what becomes of late logins: count or dead_letter

	Lanes map[lane][]event // what happens, in order
	// Interlude is what happens to the log when all of it is applied, before some more events;
	// nil for nothing.
	Interlude *fault
}

// event is a fault that is due.
type event struct {
	after time.Duration // from the beginning
	fault *fault
}

// random is a source of random numbers of its own for each use of a seed.
func random(seed uint64, use string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(use))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// draw draws a round. A topology, if not empty, stands for the one drawn; faults of the names
// without are left out.
func draw(seed uint64, topology string, without []string) *plan {
	r := random(seed, "plan")
	p := &plan{
		Seed: seed, Topology: topologies[r.IntN(len(topologies))], Partitions: 1 + r.IntN(6),
		Shards: []int{1, 3, 8, 16}[r.IntN(4)], Processors: 1 + r.IntN(3), BatchMax: []int{20, 100, 500}[r.IntN(3)],
		Events: 2000 + r.IntN(4000), Length: time.Duration(10+r.IntN(8)) * time.Second,
		Late: []string{"count", "dead_letter"}[r.IntN(2)],
	}
	if topology != "" {
		p.Topology = topology
	}
	if p.Topology == "cluster" {
		p.Shards = []int{3, 16, 24}[r.IntN(3)]
	}
	p.Options = drawOptions(random(seed, "options"))
	p.Lanes = drawFaults(random(seed, "faults"), p, without)
	if interludes := fitting(interludeLane, p, without); len(interludes) > 0 && r.IntN(3) == 0 {
		p.Interlude = interludes[r.IntN(len(interludes))]
		// A feature that is young and one whose log has a gap say the same, and are compared
		// otherwise.
		p.Lanes[processorLane] = slices.DeleteFunc(p.Lanes[processorLane], func(e event) bool { return e.fault == reloadDefinitions })
	}
	versions := 1
	for _, e := range p.Lanes[processorLane] {
		if e.fault == reloadDefinitions {
			versions++
		}
	}
	p.Versions = drawVersions(random(seed, "definitions"), versions)
	return p
}

// drawFaults draws for each lane what happens when.
func drawFaults(r *rand.Rand, p *plan, without []string) map[lane][]event {
	lanes := map[lane][]event{}
	for _, l := range []lane{processorLane, redisLane, kafkaLane} {
		fit := fitting(l, p, without)
		if len(fit) == 0 {
			continue
		}
		at := time.Duration(r.Int64N(int64(p.Length / 3)))
		for at < p.Length {
			lanes[l] = append(lanes[l], event{at, fit[r.IntN(len(fit))]})
			at += time.Second + time.Duration(r.Int64N(int64(p.Length/2)))
		}
	}
	return lanes
}

// fitting are the faults of a lane that a round may have.
func fitting(l lane, p *plan, without []string) (fit []*fault) {
	for _, f := range faults {
		if f.lane == l && (f.topologies == nil || slices.Contains(f.topologies, p.Topology)) && !slices.Contains(without, f.name) {
			fit = append(fit, f)
		}
	}
	return fit
}
