package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/workload"
)

var topologies = []string{"single", "sentinel", "cluster", "ignite"}

// scenario is everything that a seed draws for a round. Only the timing depends on the machine.
type scenario struct {
	Seed       uint64
	Topology   string
	Partitions int // of the topic of payments
	Shards     int
	Processors int
	BatchMax   int // maximum events in a batch
	CallMax    int // maximum mutations in a script call
	Backlog    int // events written before the processes start; 0 in most rounds

	Events  int
	Length  time.Duration // how long events are written and faults happen
	Options workload.Options

	// Versions of the definitions: a round starts with the first, and faults load the others. The
	// features named always_… are the same in all versions.
	Versions [][]workload.Feature
	Late     string // how late workload.Logins are handled: count or dead_letter
	Dedup    string // of workload.Payments; empty for none

	Lanes map[lane][]event // faults in order
	// Interlude changes the log once all of it is applied, before some more events are written; nil if there is none.
	Interlude *fault
}

// event is a scheduled fault.
type event struct {
	after time.Duration // since the beginning
	fault *fault
}

// random returns a source of random numbers for one use of a seed.
func random(seed uint64, use string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(use))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// draw draws a round. A topology that is not empty replaces the drawn one; faults named in without
// are left out.
func draw(seed uint64, topology string, without []string) *scenario {
	p := sketch(seed, topology, without)
	p.define()
	return p
}

// sketch draws a round without its definitions, which take long.
func sketch(seed uint64, topology string, without []string) *scenario {
	r := random(seed, "plan")
	p := &scenario{
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
	p.CallMax = []int{2, 10, 50, 1500}[random(seed, "calls").IntN(4)] // short calls leave slices ahead where they are interrupted
	p.Options = workload.DrawOptions(random(seed, "options"))
	if r := random(seed, "backlog"); r.IntN(4) == 0 && len(fitting(preludeLane, p, without)) > 0 {
		p.drawBacklog(r)
	}
	if p.Topology == "ignite" && p.enriches() {
		p.Options = p.Options.Dense()
	}
	p.Lanes = drawFaults(random(seed, "faults"), p, without)
	if interludes := fitting(interludeLane, p, without); len(interludes) > 0 && r.IntN(3) == 0 {
		p.Interlude = interludes[r.IntN(len(interludes))]
		// A young feature and one with a gap in its log look the same in answers, but are compared differently.
		p.Lanes[processorLane] = slices.DeleteFunc(p.Lanes[processorLane], func(e event) bool { return e.fault == reloadDefinitions })
	}
	return p
}

// define draws the definitions.
func (p *scenario) define() {
	versions := 1
	for _, e := range p.Lanes[processorLane] {
		if e.fault == reloadDefinitions {
			versions++
		}
	}
	p.Dedup = []string{"", "1m", "2h", "7d"}[random(p.Seed, "dedup").IntN(4)]
	p.Versions = workload.DrawVersions(random(p.Seed, "definitions"), versions)
}

// enriches reports whether logins are written with features. Partitions then catch up in step, so there would be no long batches of a
// backlog.
func (p *scenario) enriches() bool { return p.Backlog == 0 }

// drawFaults draws the faults of each lane and their times.
func drawFaults(r *rand.Rand, p *scenario, without []string) map[lane][]event {
	lanes := map[lane][]event{}
	for _, l := range []lane{processorLane, redisLane, kafkaLane} {
		fit := fitting(l, p, without)
		if len(fit) == 0 {
			continue
		}
		first, least, spread := p.Length/3, time.Second, p.Length/2
		if p.Backlog > 0 && l == processorLane {
			first, least, spread = time.Second, 0, 1500*time.Millisecond
		}
		at := time.Duration(r.Int64N(int64(first)))
		for at < p.Length {
			lanes[l] = append(lanes[l], event{at, fit[r.IntN(len(fit))]})
			at += least + time.Duration(r.Int64N(int64(spread)))
		}
	}
	return lanes
}

// faults returns the names of the faults that the round has.
func (p *scenario) faults() (names []string) {
	for _, events := range p.Lanes {
		for _, e := range events {
			names = append(names, e.fault.name)
		}
	}
	if p.Backlog > 0 {
		names = append(names, backlog.name)
	}
	if p.Interlude != nil {
		names = append(names, p.Interlude.name)
	}
	return names
}

// fitting returns the faults of a lane that the round may have.
func fitting(l lane, p *scenario, without []string) (fit []*fault) {
	for _, f := range faults {
		if p.Backlog > 0 && l == processorLane && !slices.Contains(interrupting, f) {
			continue
		}
		if f.lane == l && (f.topologies == nil || slices.Contains(f.topologies, p.Topology)) && !slices.Contains(without, f.name) {
			fit = append(fit, f)
		}
	}
	return fit
}

// drawing defines which rounds may be drawn.
type drawing struct {
	topology      string   // empty for all
	with, without []string // faults that each round has, and has not
}

// check refuses unknown names.
func (d *drawing) check() error {
	if d.topology != "" && !slices.Contains(topologies, d.topology) {
		return fmt.Errorf("no topology %q; there are %s", d.topology, strings.Join(topologies, ", "))
	}
	for _, name := range slices.Concat(d.with, d.without) {
		if !slices.Contains(faultNames(), name) {
			return fmt.Errorf("no fault %q; there are %s", name, strings.Join(faultNames(), ", "))
		}
	}
	return nil
}

// tries is how many seeds are tried for a round with the requested faults.
const tries = 10_000

// next draws the first round of some seeds that has the requested faults.
func (d *drawing) next(seeds func() uint64) (*scenario, error) {
	for range tries {
		if p := sketch(seeds(), d.topology, d.without); d.fits(p) {
			p.define()
			return p, nil
		}
	}
	return nil, fmt.Errorf("none of %d seeds draws a round with %s", tries, strings.Join(d.with, ", "))
}

// fits reports whether a round has all requested faults.
func (d *drawing) fits(p *scenario) bool {
	has := p.faults()
	return !slices.ContainsFunc(d.with, func(name string) bool { return !slices.Contains(has, name) })
}
