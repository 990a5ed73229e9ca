package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// pool holds the workers that process partitions by one registry. A worker starts with its first partition.
type pool struct {
	p        *Processor
	given    *features.Registry
	registry *features.Registry // bound to generations
	commit   func(map[state.Partition]int64)

	ctx        context.Context // of the workers
	fail       context.CancelCauseFunc
	patient    context.Context // for finishing what is under way when ctx ends
	giveUp     context.CancelFunc
	running    sync.WaitGroup
	workers    []*worker // nil if not started
	load       []int     // number of partitions, by worker
	recentLoad *load
	of         map[state.Partition]int
	memories   memories
}

func newPool(ctx context.Context, p *Processor, given, registry *features.Registry, commit func(map[state.Partition]int64)) *pool {
	ctx, fail := context.WithCancelCause(ctx)
	patient, giveUp := outlast(ctx, p.cfg.ShutdownTimeout)
	return &pool{
		p: p, given: given, registry: registry, commit: commit, ctx: ctx, fail: fail, patient: patient, giveUp: giveUp,
		workers: make([]*worker, p.cfg.Workers), load: make([]int, p.cfg.Workers), recentLoad: newLoad(), of: make(map[state.Partition]int),
		memories: memories{of: map[state.Partition]memory{}},
	}
}

// end waits until the workers have flushed. It returns the error of a worker that failed.
func (s *pool) end() error {
	s.fail(nil)
	s.running.Wait()
	s.giveUp()
	if err := context.Cause(s.ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// accept gives each partition to the worker with the fewest. It ignores topics that the registry
// does not read: the group will be notified.
func (s *pool) accept(partitions []state.Partition) {
	to, load, topics := make(map[state.Partition]int), slices.Clone(s.load), s.registry.Topics()
	for _, id := range partitions {
		if slices.Contains(topics, id.Topic) {
			least := slices.Index(load, slices.Min(load))
			load[least]++
			to[id] = least
		}
	}
	s.give(to)
}

// release flushes and releases partitions. Work that is not finished in time is abandoned.
func (s *pool) release(partitions []state.Partition, within time.Duration) {
	shares := make(map[int][]state.Partition)
	for _, id := range partitions {
		if i, ok := s.of[id]; ok {
			shares[i] = append(shares[i], id)
			s.load[i]--
			delete(s.of, id)
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	var waiting sync.WaitGroup
	for i, share := range shares {
		waiting.Go(func() {
			released := make(chan struct{})
			s.send(i, change{release: share, released: released})
			select {
			case <-released:
			case <-ctx.Done():
				s.send(i, change{abandon: share})
			}
		})
	}
	waiting.Wait()
}

// send changes a worker's partitions, unless it is about to end.
func (s *pool) send(i int, c change) {
	if s.workers[i] == nil {
		s.begin(i)
	}
	select {
	case s.workers[i].changes <- c:
	case <-s.ctx.Done():
	}
}

// enoughOfShard is how many events of a batch, for each shard, are worth the script call that the shard gets: more
// together are hardly cheaper.
const enoughOfShard = 50

// begin makes a worker and runs it.
func (s *pool) begin(i int) {
	p := s.p
	poller := fetch.NewPoller(fetch.PollerConfig{
		Transport: p.cfg.Transport, Bootstrap: kafka.TCP(p.cfg.Brokers...), Isolation: p.cfg.Isolation,
		MaxBytes: p.cfg.FetchMaxBytes, PartitionMaxBytes: p.cfg.FetchPartitionMaxBytes,
		Pace: p.cfg.Freshness, Enough: func() int { return enoughOfShard * p.cfg.Store.Shards() }, Logger: p.log,
	})
	a := s.newApplier(fmt.Sprintf("worker %d", i))
	w := &worker{
		cfg: &p.cfg, metrics: p.metrics, log: p.log, poller: poller, health: p.health,
		mapper: s.registry.NewMapper(), plan: s.registry.Plan(), streams: s.registry.Streams, memories: &s.memories, enrich: enrich.Streams(s.registry), applier: a, commit: s.commit,
		recentLoad: s.recentLoad, pruning: pruning{grace: p.cfg.Recovery.GracePeriod},
		tracing: p.tracing, live: p.live,
		resumer: recovery.Resumer{
			Rules: p.cfg.Recovery, Store: p.cfg.Store, Brokers: poller, Plan: s.registry.Plan(), Streams: s.registry.Streams, Log: p.log,
			Register: s.register,
			Metrics:  recovery.Metrics{Lost: p.metrics.lost, Vanished: p.metrics.vanished},
		},
		partitions: make(map[state.Partition]*assignedPartition), current: newBatch(), other: newBatch(),
		changes: make(chan change), resumed: make(chan resumed),
	}
	if len(w.enrich) > 0 {
		w.alignment = p.alignment
	}
	w.mapper.MaxRecordBytes, w.mapper.Namespace = p.cfg.MaxRecordBytes, p.cfg.Namespace
	s.workers[i] = w
	var applying sync.WaitGroup
	applying.Go(func() { a.run(s.patient) })
	s.running.Go(func() {
		defer poller.Close()
		defer applying.Wait()
		defer close(a.todo)
		defer p.health.clear(a.name)
		if err := w.run(s.ctx); err != nil {
			s.fail(err)
		}
	})
}

// register registers the plan before partitions are claimed for it, and returns the history on which it was bound. If the
// definitions bind to another plan now, they are bound again, and nothing is claimed: the store may have gone back to before a
// generation was filled, and this plan may no longer keep the one that was complete then. If it goes back later, nothing is
// claimed either; see state.Claimant.
func (s *pool) register(ctx context.Context) ([]state.Rival, *state.History, error) {
	if s.p.bindsOtherwise(ctx, s.given, s.registry.Plan()) {
		s.p.definitions.rebind(s.given)
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	seen := s.p.last.Load().history
	rivals, err := s.p.definitions.registration(s.registry.Plan()).renew(ctx)
	return rivals, seen, err
}

func (s *pool) newApplier(name string) *applier {
	p := s.p
	return &applier{
		todo: make(chan *workerBatch), done: make(chan *workerBatch, 1), writer: p.cfg.Store.NewWriter(), dead: p.dead, deadTopic: p.cfg.DeadLetterTopic, written: writtenLetters{},
		enrich: enrich.New(p.cfg.Store, p.history, p.alignment,
			&kafka.Client{Addr: kafka.TCP(p.cfg.Brokers...), Transport: p.cfg.Transport, Timeout: 10 * time.Second},
			p.cfg.Schemas, p.cfg.Tables, enrich.Metrics{Written: p.metrics.enriched, Damaged: p.metrics.damaged}, p.log),
		gap: p.cfg.Store.Gap, grace: p.cfg.Recovery.GracePeriod,
		tracing: p.tracing, metrics: p.metrics, stats: &p.stats, busiest: p.busiest, health: p.health, name: name,
		trouble: retry.Trouble{Log: p.log, What: "applying to the store"},
	}
}
