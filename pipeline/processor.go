package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/state"
)

// Processor is one member of the consumer group.
type Processor struct {
	cfg     Config
	metrics *metrics
	tracing tracing
	log     *slog.Logger
	health  *health
	stats   stats
	dead    *kafka.Writer
	past    *past

	definitions *definitions
}

// New returns a processor; Run makes it work.
func New(cfg Config) *Processor {
	cfg = cfg.withDefaults()
	p := &Processor{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), tracing: newTracing(&cfg), log: cfg.Logger, health: newHealth(),
		dead: newDeadLetterWriter(&cfg), definitions: newDefinitions(cfg.Registry),
		past: &past{read: func(ctx context.Context) (*state.History, error) { return cfg.Store.History(ctx) }, now: time.Now},
	}
	p.health.set("group", errNotMember)
	return p
}

// Ready is nil while partitions are assigned and carried; else it says what is
// in the way. Where that is only in the way of some shards, the error has a method
// Degraded.
func (p *Processor) Ready(context.Context) error { return p.health.err() }

// Stats counts records since the processor was made. A record that was read
// again after a rewind counts again.
type Stats struct {
	Applied   int64 // to the state; late ones are among them
	Dead      int64 // written to the dead-letter topic
	Unmatched int64 // of no stream
	Assigned  int64 // partitions now
}

type stats struct {
	applied, dead, unmatched, assigned atomic.Int64

	recent recent
}

func (s *stats) add(b *batch) {
	s.recent.add(b)
	for o, n := range b.outcomes {
		switch o.what {
		case dead:
			s.dead.Add(int64(n))
		case unmatched:
			s.unmatched.Add(int64(n))
		default:
			s.applied.Add(int64(n))
		}
	}
}

// Stats is how far the processor is.
func (p *Processor) Stats() Stats {
	s := &p.stats
	return Stats{s.applied.Load(), s.dead.Load(), s.unmatched.Load(), s.assigned.Load()}
}

// Run carries events until the context ends; then it flushes, commits and
// leaves the group. Its error says what is wrong with the configuration; passing
// troubles of Kafka and Redis are waited out, and a partition that cannot go on
// stops alone.
func (p *Processor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer p.dead.Close()
	var registering sync.WaitGroup
	registering.Go(func() { p.register(ctx) })
	defer registering.Wait()
	defer cancel(nil)
	for ctx.Err() == nil {
		registry, _ := p.definitions.present()
		if err := p.join(ctx, registry.Topics()); err != nil {
			return err
		}
	}
	return failure(ctx)
}

// failure is why the context ended, if it was more than a request to stop.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// generation carries the partitions of one generation of the group until its
// context ends, and gives them up flushed and committed.
func (p *Processor) generation(ctx context.Context, g *group.Generation, topics []string) error {
	ctx, cancel := until(ctx, g.Done())
	defer cancel()
	assigned := g.Partitions
	p.log.Info("partitions assigned", "generation", g.ID, "partitions", len(assigned))
	p.metrics.assigned(assigned)
	p.stats.assigned.Store(int64(len(assigned)))
	for _, id := range assigned {
		p.health.set(partitionName(id), errNotResumed)
		defer p.health.clear(partitionName(id))
	}
	p.health.clear("group")
	defer p.metrics.partitions.Set(0)
	defer p.metrics.resetLag()
	commits := newCommitter(g, p.log)
	defer commits.close()
	for ctx.Err() == nil {
		registry, replaced := p.definitions.present()
		if !slices.Equal(registry.Topics(), topics) {
			<-ctx.Done() // this membership is about to end
			break
		}
		present, cancel := until(ctx, replaced)
		err := p.carry(present, registry, assigned, commits.commit)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// carry carries partitions by the same definitions until the context ends, and
// flushes.
func (p *Processor) carry(ctx context.Context, registry *features.Registry, assigned []state.Partition,
	commit func(map[state.Partition]int64)) error {
	// What is under way when the context ends has a time of its own.
	patient, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(p.cfg.ShutdownTimeout, giveUp) })()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var workers sync.WaitGroup
	for i := range min(p.cfg.Workers, len(assigned)) {
		var share []state.Partition
		for n := i; n < len(assigned); n += p.cfg.Workers {
			share = append(share, assigned[n])
		}
		workers.Go(func() {
			if err := p.work(ctx, patient, fmt.Sprintf("worker %d", i), registry, share, commit); err != nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	workers.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// errNotMember is what the group's health is until partitions are assigned.
var errNotMember = errors.New("not a member yet")

// errNotResumed is what a partition's health is until it is read.
var errNotResumed = errors.New("its progress was not read yet")

// work makes a worker for some partitions and runs it.
func (p *Processor) work(ctx, patient context.Context, name string, registry *features.Registry, share []state.Partition,
	commit func(map[state.Partition]int64)) error {
	poller := fetch.NewPoller(fetch.PollerConfig{
		Transport: p.cfg.Transport, Bootstrap: kafka.TCP(p.cfg.Brokers...), Isolation: p.cfg.Isolation,
		MinBytes: p.cfg.FetchMinBytes, MaxBytes: p.cfg.FetchMaxBytes,
		PartitionMaxBytes: p.cfg.FetchPartitionMaxBytes, MaxWait: p.cfg.FetchMaxWait, Logger: p.log,
	})
	defer poller.Close()
	a := &applier{
		todo: make(chan *batch), done: make(chan *batch, 1), writer: p.cfg.Store.NewWriter(), dead: p.dead,
		enrich: &enricher{
			store: p.cfg.Store, past: p.past, metrics: p.metrics, log: p.log,
			writer: enrichedWriter{&kafka.Client{Addr: kafka.TCP(p.cfg.Brokers...), Transport: p.cfg.Transport, Timeout: 10 * time.Second}},
		},
		gap:     p.cfg.Store.Gap,
		tracing: p.tracing, metrics: p.metrics, stats: &p.stats, health: p.health, name: name,
		trouble: trouble{log: p.log, what: "applying to Redis"},
	}
	var applying sync.WaitGroup
	applying.Go(func() { a.run(patient) })
	defer applying.Wait()
	defer close(a.todo)
	w := &worker{
		cfg: &p.cfg, metrics: p.metrics, log: p.log, poller: poller, health: p.health,
		mapper: registry.NewMapper(), plan: registry.Plan(), enrich: enrichPlans(registry), applier: a, commit: commit,
		tracing: p.tracing,
		recovery: recovery{
			cfg: &p.cfg, metrics: p.metrics, log: p.log, brokers: poller, plan: registry.Plan(),
		},
		partitions: make(map[state.Partition]*partition), current: newBatch(), spare: newBatch(),
	}
	w.mapper.MaxRecordBytes = p.cfg.MaxRecordBytes
	for _, id := range share {
		w.partitions[id] = &partition{
			Partition: id, under: id.Under(registry.Plan().Version),
			trouble: trouble{log: p.log.With("topic", id.Topic, "partition", id.ID), what: "carrying the partition"},
		}
	}
	defer p.health.clear(name)
	return w.run(ctx)
}
