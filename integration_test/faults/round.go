package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/integration_test/faults/servers"
	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/server"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/ignite"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// round is one round in progress.
type round struct {
	trials   *trials
	scenario *scenario
	kit      *servers.Kit
	over     atomic.Bool // later failures are caused by the shutdown

	suffix     string // of topics and of the namespace
	kafka      *servers.Broker
	redis      servers.Redis   // nil on Ignite
	ignite     *servers.Ignite // nil on Redis
	store      progressed
	processors []*servers.Process
	api        *servers.Process
	again      string             // suffix of the new namespace, if one was started over
	retired    []*servers.Process // processes of the first namespace
	version    int                // of the definitions loaded last
	writer     *writer
	ledger     *ledger
	backlog    map[state.Partition]int64 // where the backlog ends; nil if there is none

	mu       sync.Mutex
	began    time.Time
	faults   map[string]int
	failures []string
	res      result
}

func newRound(t *trials, p *scenario) *round {
	r := &round{trials: t, scenario: p, faults: map[string]int{}}
	r.kit = servers.NewKit(fmt.Sprint("round-", p.Seed), r.failure)
	return r
}

// random returns a source of random numbers for one use.
func (r *round) random(use string) *rand.Rand { return random(r.scenario.Seed, use) }

// shownFailures bounds the failures of a round that are printed.
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

// had reports whether a fault has happened.
func (r *round) had(f *fault) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults[f.name] > 0
}

func (r *round) result() result {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, res := r.scenario, r.res
	res.Seed, res.Topology, res.Partitions, res.Shards, res.Processors = p.Seed, p.Topology, p.Partitions, p.Shards, p.Processors
	res.Faults, res.Failures = r.faults, r.failures
	for _, process := range slices.Concat(r.retired, r.processors, []*servers.Process{r.api}) {
		if process != nil {
			res.Exits += process.Exits()
		}
	}
	return res
}

// play runs the round: servers, processes, events and faults, and the comparison.
func (r *round) play() {
	r.suffix = "-" + testkit.Namespace(r.kit)
	r.kafka = r.trials.kafka()
	topics := r.topics()
	for topic, partitions := range topics {
		r.kafka.CreateTopic(topic, partitions)
	}
	defer r.kafka.DeleteTopics(slices.Collect(maps.Keys(topics))...)
	if r.scenario.Topology == "ignite" {
		r.ignite = r.trials.ignited(r.kit)
	} else {
		r.redis = r.trials.redis(r)
	}
	r.writer = newWriter(r)
	r.ledger = newLedger(r)
	if r.scenario.Backlog > 0 {
		backlog.happen(r, nil)
		r.happened(backlog.name)
	}
	r.begin()
	defer r.end()
	unwatch := r.watch()
	defer unwatch()
	r.flow()
	if r.kit.Failed() {
		return
	}
	r.awaitApplied()
	if r.scenario.Interlude != nil {
		unwatch() // keys may be evicted, or the processes replaced
		r.interlude()
	}
	r.compare()
}

// progressed is a store that says how far it is.
type progressed interface {
	Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
}

// openStore opens the store of the round's namespace.
func (r *round) openStore() progressed {
	if r.ignite != nil {
		return ignite.New(ignite.Config{Client: r.ignite.Client, Namespace: r.namespace(), Shards: r.scenario.Shards, Backups: 1})
	}
	return redisstore.New(r.redis.Client(), r.namespace(), r.scenario.Shards)
}

// begin starts the processes, in an unused namespace.
func (r *round) begin() {
	r.store = r.openStore()
	r.processors = nil
	for i := range r.scenario.Processors {
		r.processors = append(r.processors, r.newProcess(fmt.Sprint("processor", i, r.again), "processor"))
	}
	r.api = r.newProcess("api"+r.again, "api")
	for _, p := range r.all() {
		p.Start()
	}
}

// newProcess returns a process with the newest definitions, not yet started.
func (r *round) newProcess(name, role string) *servers.Process {
	return servers.NewProcess(r.kit, name, r.trials.binary, role, r.definitions(r.version), slices.Concat(r.settings(), r.scenario.settings())...)
}

func (r *round) all() []*servers.Process {
	return append(r.processors[:len(r.processors):len(r.processors)], r.api)
}

// end kills the processes, and reports panics and data races in their logs.
func (r *round) end() {
	for _, p := range append(r.retired, r.all()...) {
		p.Kill()
		if broken := blackbox.Broken(p.Log()); broken != "" {
			r.kit.Errorf("%s: %s", p.Name, broken)
		}
	}
}

// flow writes the events while the faults happen.
func (r *round) flow() {
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	faults, over := context.WithCancel(context.Background())
	var slowing, lanes sync.WaitGroup
	if r.backlog != nil {
		slowing.Go(func() { r.slowDown(faults) })
	}
	lanes.Go(r.writer.run)
	for name, events := range r.scenario.Lanes {
		random := r.random(string(name))
		lanes.Go(func() {
			for _, e := range events {
				r.sleepUntil(e.after)
				if !r.due(e.fault) {
					continue
				}
				if r.kit.Failed() {
					return
				}
				e.fault.happen(r, random)
				r.happened(e.fault.name)
			}
		})
	}
	lanes.Wait()
	over()
	slowing.Wait()
}

// interlude injects a fault that changes a log, and writes some more events. All records must be applied before, or it
// would be uncertain which of them count.
func (r *round) interlude() {
	random := r.random("interlude")
	r.scenario.Interlude.happen(r, random)
	r.happened(r.scenario.Interlude.name)
	for _, p := range r.processors {
		p.Start()
	}
	r.writer.more(1 + random.IntN(600))
	r.awaitApplied()
}

// killAllOrNone kills all processors in one case of three, so that the log changes with and without
// processors running.
func (r *round) killAllOrNone(random *rand.Rand) {
	if random.IntN(3) > 0 {
		return
	}
	for _, p := range r.processors {
		p.Kill()
	}
}

// sleepUntil sleeps until a time after the round's beginning.
func (r *round) sleepUntil(after time.Duration) { time.Sleep(time.Until(r.began.Add(after))) }

// pause sleeps for a random time between two bounds.
func pause(random *rand.Rand, least, most time.Duration) {
	time.Sleep(least + time.Duration(random.Int64N(int64(most-least)+1)))
}

// appliedWithin bounds how long it takes to apply everything once all servers work again.
const appliedWithin = 3 * time.Minute

// operatorLooks is the interval at which an operator looks for hanging transactions.
const operatorLooks = 2 * time.Second

// awaitApplied waits until every shard has applied every partition to its end. Before, an operator joins the nodes of a cluster that
// has split for lack of CPU; meanwhile one aborts transactions that the broker has forgotten.
func (r *round) awaitApplied() {
	if r.ignite != nil {
		r.ignite.AwaitCopies(r.kit)
	}
	var looked time.Time
	partitions, rows := r.partitions(), r.rowPartitions()
	detail, ok := server.Poll(appliedWithin, func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if time.Since(looked) > operatorLooks {
			looked = time.Now()
			n, err := r.kafka.AbortHanging(ctx, slices.Concat(partitions, rows))
			if err != nil {
				return false, err.Error()
			}
			for range n {
				r.happened("transaction forgotten by the broker")
			}
		}
		ends, err := r.kafka.Ends(ctx, partitions)
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
		if open := r.kafka.OpenTransactions(rows); open != "" {
			return false, "transactions are open in " + open
		}
		return true, ""
	})
	if !ok {
		for _, p := range r.all() {
			p.Abort()
		}
		r.kit.Fatalf("everything is applied: did not happen within %v; where goroutines waited is in the logs of the processes; last seen: %s", appliedWithin, detail)
	}
}

// awaitTables waits until the API has all rows of tables and lists that are in the topics now.
func (r *round) awaitTables() {
	written := time.Now()
	q := blackbox.Question{Features: workload.OfRows, Entities: []json.RawMessage{json.RawMessage(`{"shop":"s0","card":"c0","ip":"10.0.0.0"}`)}}
	testkit.Eventually(r.kit, time.Minute, "the tables are read", func() (bool, string) {
		asked := time.Now()
		reply, err := blackbox.Query(r.api.URL(), q)
		if err != nil || reply.TableLag == nil {
			return false, fmt.Sprintf("%+v, %v", reply, err)
		}
		lag := time.Duration(*reply.TableLag) * time.Millisecond
		return asked.Add(-lag).After(written), fmt.Sprintf("they are as of %s ago", lag)
	})
}

// tails returns the last lines of the processes' logs.
func (r *round) tails() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transactions are open in %q", r.kafka.OpenTransactions(r.partitions()))
	for _, p := range r.all() {
		log := p.Log()
		fmt.Fprintf(&b, "\n%s says:\n%s", p.Name, log[max(0, len(log)-600):])
	}
	return b.String()
}

// definitions returns a version of the definitions as text for a file.
func (r *round) definitions(version int) string {
	return workload.Definitions(r.scenario.Versions[version], r.suffix, r.scenario.Late, r.scenario.Dedup, r.scenario.enriches())
}

// registry compiles a version of the definitions.
func (r *round) registry(version int) *features.Registry {
	registry, err := defined.Parse(r.definitions(version))
	if err != nil {
		r.kit.Fatal(err)
	}
	return registry
}
