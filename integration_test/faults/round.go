package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// round is one round while it is played.
type round struct {
	trials *trials
	plan   *plan
	kit    *kit
	over   atomic.Bool // what fails from now on is the end's doing

	suffix     string // of topics, and the namespace
	kafka      *broker
	redis      redisSide
	store      *redisstore.Store
	processors []*process
	api        *process
	again      string     // behind the first namespace's name, that of the one which was begun anew
	retired    []*process // of the first namespace
	version    int        // of the definitions that were given out last
	writer     *writer
	ledger     *ledger

	mu       sync.Mutex
	began    time.Time
	faults   map[string]int
	failures []string
	res      result
}

func newRound(t *trials, p *plan) *round {
	r := &round{trials: t, plan: p, faults: map[string]int{}}
	r.kit = newKit(fmt.Sprint("round-", p.Seed), r.failure)
	return r
}

// random is a source of random numbers for one use.
func (r *round) random(use string) *rand.Rand { return random(r.plan.Seed, use) }

// shownFailures is how many failures of a round are told.
const shownFailures = 12

func (r *round) failure(message string) {
	if r.over.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.failures) < shownFailures {
		r.failures = append(r.failures, message)
	}
}

// happened counts a fault.
func (r *round) happened(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[name]++
}

func (r *round) result() result {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, res := r.plan, r.res
	res.Seed, res.Topology, res.Partitions, res.Shards, res.Processors = p.Seed, p.Topology, p.Partitions, p.Shards, p.Processors
	res.Faults, res.Failures = r.faults, r.failures
	for _, process := range slices.Concat(r.retired, r.processors, []*process{r.api}) {
		if process != nil {
			res.Exits += process.exits
		}
	}
	return res
}

// play plays the round: servers, processes, events and faults, and the comparison.
func (r *round) play() {
	r.suffix = "-" + testkit.Namespace(r.kit)
	r.kafka = r.trials.kafka()
	r.kafka.createTopics(r.suffix, r.plan.Partitions)
	defer r.kafka.deleteTopics()
	r.redis = r.trials.redis(r)
	r.begin()
	defer r.end()
	r.writer = newWriter(r)
	r.ledger = newLedger(r)
	r.flow()
	if r.kit.Failed() {
		return
	}
	r.awaitApplied()
	if r.plan.Interlude != nil {
		r.interlude()
	}
	r.compare()
}

// begin starts the processes, in a namespace that nobody has used.
func (r *round) begin() {
	r.store = redisstore.New(r.redis.client(), r.namespace(), r.plan.Shards)
	r.processors = nil
	for i := range r.plan.Processors {
		r.processors = append(r.processors, r.newProcess(fmt.Sprint("processor", i, r.again), "processor"))
	}
	r.api = r.newProcess("api"+r.again, "api")
	for _, p := range r.all() {
		p.start()
	}
}

func (r *round) namespace() string { return "faults" + r.suffix + r.again }

func (r *round) all() []*process {
	return append(r.processors[:len(r.processors):len(r.processors)], r.api)
}

// end ends the processes, and tells what they say of themselves that must not be.
func (r *round) end() {
	for _, p := range append(r.retired, r.all()...) {
		p.end()
		if broken := blackbox.Broken(p.log()); broken != "" {
			r.kit.Errorf("%s: %s", p.name, broken)
		}
	}
}

// flow writes the events while the faults happen.
func (r *round) flow() {
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	var lanes sync.WaitGroup
	lanes.Go(r.writer.run)
	for name, events := range r.plan.Lanes {
		random := r.random(string(name))
		lanes.Go(func() {
			for _, e := range events {
				r.sleepUntil(e.after)
				if r.kit.Failed() {
					return
				}
				e.fault.happen(r, random)
				r.happened(e.fault.name)
			}
		})
	}
	lanes.Wait()
}

// interlude has something happen to the log that must find all of it applied, for what counts
// to be certain, and goes on with some more events.
func (r *round) interlude() {
	random := r.random("interlude")
	r.plan.Interlude.happen(r, random)
	r.happened(r.plan.Interlude.name)
	for _, p := range r.processors {
		p.start()
	}
	r.writer.more(1 + random.IntN(600))
	r.awaitApplied()
}

// killAllOrNone lets the log change while processors run or while there are none.
func (r *round) killAllOrNone(random *rand.Rand) {
	if random.IntN(3) > 0 {
		return
	}
	for _, p := range r.processors {
		p.kill()
	}
}

// sleepUntil waits until so long after the round's beginning.
func (r *round) sleepUntil(after time.Duration) { time.Sleep(time.Until(r.began.Add(after))) }

// pause waits for a random time between two.
func pause(random *rand.Rand, least, most time.Duration) {
	time.Sleep(least + time.Duration(random.Int64N(int64(most-least)+1)))
}

// appliedWithin bounds how long all may take to be applied when nothing is broken any more.
const appliedWithin = 3 * time.Minute

// awaitApplied waits until every shard has applied every partition to its end. Meanwhile an
// operator ends transactions that the broker has forgotten.
func (r *round) awaitApplied() {
	var looked time.Time
	wait(r.kit, appliedWithin, "everything is applied", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if time.Since(looked) > operatorLooks {
			looked = time.Now()
			n, err := r.kafka.abortHanging(ctx)
			if err != nil {
				return false, err.Error()
			}
			for range n {
				r.happened("transaction forgotten by the broker")
			}
		}
		partitions := r.kafka.partitions()
		ends, err := r.kafka.ends(ctx)
		if err != nil {
			return false, err.Error()
		}
		progress, err := r.store.Progress(ctx, partitions)
		if err != nil {
			return false, err.Error()
		}
		for i, p := range partitions {
			for shard, next := range progress[i] {
				if next.Offset != ends[p] {
					return false, fmt.Sprintf("shard %d has applied %v up to %d of %d; %s", shard, p, next.Offset, ends[p], r.tails())
				}
			}
		}
		return true, ""
	})
}

// tails are the ends of the processes' logs.
func (r *round) tails() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transactions are open in %s", r.kafka.open())
	for _, p := range r.all() {
		log := p.log()
		fmt.Fprintf(&b, "\n%s says:\n%s", p.name, log[max(0, len(log)-600):])
	}
	return b.String()
}

// definitions are a version of the definitions as a file has them, and compiled.
func (r *round) definitions(version int) (string, *features.Registry) {
	text := definitionsText(r.plan.Versions[version], r.suffix, r.plan.Late)
	registry, err := definition.Parse(filepath.Join("seed", fmt.Sprint(r.plan.Seed)), []byte(text))
	if err != nil {
		r.kit.Fatal(err)
	}
	return text, registry
}

// known are the partitions of a topic.
func partitionsOf(topic string, n int) (all []state.Partition) {
	for id := range n {
		all = append(all, state.Partition{Topic: topic, ID: int32(id)})
	}
	return all
}
