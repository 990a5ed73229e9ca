package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/servers"
	"github.com/weir-stream/weir/internal/testkit/server"
	"github.com/weir-stream/weir/state"
)

// Many events are in the logs before the processes start. They are applied in long batches, each in many script calls of
// a shard. The faults of processors and Redis wait until a batch is applied in part, and follow one another quickly.
var backlog = &fault{name: "backlog", lane: preludeLane, topologies: onRedis, happen: func(r *round, _ *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r.writer.more(r.scenario.Backlog)
	var err error
	if r.backlog, err = r.kafka.Ends(ctx, r.partitions()); err != nil {
		r.kit.Fatal(err)
	}
}}

// interrupting are the faults of processors that a round with a backlog may have: those that interrupt a batch.
var interrupting = []*fault{killProcessor, hangProcessor, killAllProcessors, reloadDefinitions}

// drawBacklog draws the length of the backlog, and of the batches and calls in which it is applied. Shards have many
// entities, and none has so many events that its mutations fill a call: batches would be cut by offsets, not by slices. Nor
// does any have so many values that its state reaches the bound of a key: its answers would be capped.
func (p *scenario) drawBacklog(r *rand.Rand) {
	p.Shards, p.Processors = []int{1, 3}[r.IntN(2)], []int{1, 1, 2}[r.IntN(3)]
	p.Options = p.Options.Spread(30)
	p.Backlog = 20_000 + r.IntN(15_000)
	p.BatchMax = []int{2000, 5000, 20_000}[r.IntN(3)]
	p.CallMax = []int{100, 300, 1000}[r.IntN(3)]
}

// interruptibleWithin bounds the wait for a batch that is applied in part. No batch comes while processors wait for
// sessions to end, or for servers that another lane stopped.
const interruptibleWithin = 10 * time.Second

// due waits, while there is a backlog, until a batch is applied in part, and reports whether a fault is to happen then.
// Processors are left alone if there is no batch to interrupt: what a reload does to one would not show after others.
func (r *round) due(f *fault) bool {
	if r.backlog == nil || f.lane == kafkaLane {
		return true
	}
	return r.awaitSlicesAhead() || f.lane == redisLane
}

// awaitSlicesAhead waits until a batch is applied in part: a shard has slices ahead, at a position that it did not have
// before. It returns false if the backlog is applied meanwhile, or nothing of it.
func (r *round) awaitSlicesAhead() (interruptible bool) {
	before, _ := r.slicesAhead()
	server.Poll(interruptibleWithin, func() (bool, string) {
		ahead, applied := r.slicesAhead()
		for of, at := range ahead {
			interruptible = interruptible || at != before[of]
		}
		return interruptible || applied, ""
	})
	return interruptible
}

// slot is where the store holds the position of a partition in a shard.
type slot struct {
	partition state.Partition
	shard     int
}

// slicesAhead returns the positions that have slices ahead, and whether the backlog is applied.
func (r *round) slicesAhead() (ahead map[slot]state.Position, applied bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	partitions := slices.Collect(maps.Keys(r.backlog))
	progress, err := r.store.Progress(ctx, partitions)
	if err != nil {
		return nil, false // a fault of Redis is under way
	}
	ahead, applied = map[slot]state.Position{}, true
	for i, p := range partitions {
		for shard, at := range progress[i] {
			if at.Slices > 0 {
				ahead[slot{p, shard}] = at
			}
			applied = applied && at.Offset >= r.backlog[p]
		}
	}
	return ahead, applied
}

// busy keeps Redis from other work for some milliseconds.
const busy = `
local from = redis.call('TIME')
repeat local now = redis.call('TIME') until (now[1] - from[1]) * 1000000 + now[2] - from[2] > 50000`

// slowDown lets another client keep Redis busy until the backlog is applied or the faults are over: a batch takes some
// seconds instead of a fraction of one.
func (r *round) slowDown(faults context.Context) {
	client := r.redis.Client()
	for n := 0; faults.Err() == nil; n++ {
		if _, applied := r.slicesAhead(); applied {
			return
		}
		ctx, cancel := context.WithTimeout(faults, time.Second)
		_ = client.Eval(ctx, busy, []string{strconv.Itoa(n)}).Err() // in a cluster, keys are of all masters; a fault may be under way
		cancel()
	}
}

// kill kills processors. While there is a backlog, what they have sent and Redis has not received is lost, where a proxy
// is in between: it would finish the batch.
func (r *round) kill(processors ...*servers.Process) {
	if single, ok := r.redis.(*servers.Single); ok && r.backlog != nil {
		single.Link.Cut()
		defer single.Link.Heal()
	}
	for _, p := range processors {
		p.Kill()
	}
}

// start starts processors that were killed. If there is a backlog and no other processor runs, it counts the positions
// with slices ahead from which they start.
func (r *round) start(killed ...*servers.Process) {
	if r.backlog != nil && len(killed) == len(r.processors) {
		ahead, _ := r.slicesAhead()
		r.mu.Lock()
		r.res.TakenOver += len(ahead)
		r.mu.Unlock()
	}
	for _, p := range killed {
		p.Start()
	}
}
