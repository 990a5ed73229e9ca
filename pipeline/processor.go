package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/pipeline/align"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/busiest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Processor is one member of the consumer group.
type Processor struct {
	cfg       Config
	metrics   *metrics
	tracing   tracing
	log       *slog.Logger
	health    *health
	stats     stats
	busiest   *busiest.Counter
	dead      *DeadLetterWriter
	history   *store.Histories
	alignment *align.Alignment // of the partitions that the process is assigned

	definitions *definitions
	last        atomic.Pointer[binding] // the last look at the definitions that are applied, or were; nil before the first
	live        *backfill.Live          // batches under way
	backfiller  *backfill.Backfiller    // nil if nothing is filled
}

// New returns a processor; Run makes it work.
func New(cfg Config) *Processor {
	cfg = cfg.withDefaults()
	p := &Processor{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), tracing: newTracing(&cfg), log: cfg.Logger, health: newHealth(),
		busiest: busiest.New(time.Now), dead: NewDeadLetterWriter(cfg.Brokers, cfg.Transport, cfg.DeadLetterTopic), definitions: newDefinitions(cfg.Registry, func(plan *state.Plan) *registration {
			return &registration{store: cfg.Store, plan: plan, group: cfg.Group}
		}),
		live: backfill.NewLive(), alignment: align.New(cfg.Patience, time.Now),
		history: store.NewHistories(store.MaxHistoryAge, func(ctx context.Context) (*state.History, error) { return cfg.Store.History(ctx) }, time.Now),
	}
	p.backfiller = newBackfiller(&p.cfg, p.live, p.dead)
	p.health.set("group", errNotMember)
	return p
}

// Ready returns nil while partitions are assigned and processed; else what is wrong. If only some shards are affected,
// the error has a method Degraded.
func (p *Processor) Ready(context.Context) error { return p.health.err() }

// Stats counts records since the processor was made. A record that is read again after a rewind
// counts again.
type Stats struct {
	Applied   int64 // to the state, including late ones
	Dead      int64 // written to the dead-letter topic
	Unmatched int64 // of no stream
	Repeated  int64 // of events that earlier records had
	Assigned  int64 // partitions now
}

type stats struct {
	applied, dead, unmatched, repeated, assigned atomic.Int64

	recent recent
}

func (s *stats) add(b *workerBatch) {
	s.recent.add(b)
	for o, n := range b.outcomes {
		if b.Ranges[o.rangeIndex].Behind {
			continue // the range is read again
		}
		switch o.what {
		case outcomeDead:
			s.dead.Add(int64(n))
		case outcomeUnmatched:
			s.unmatched.Add(int64(n))
		case outcomeRepeated:
			s.repeated.Add(int64(n))
		default:
			s.applied.Add(int64(n))
		}
	}
}

// Stats returns the counts of the processor.
func (p *Processor) Stats() Stats {
	s := &p.stats
	return Stats{s.applied.Load(), s.dead.Load(), s.unmatched.Load(), s.repeated.Load(), s.assigned.Load()}
}

// Run processes events until the context ends; then it flushes, commits and leaves the group. Its error says what is
// wrong with the configuration. It waits through temporary failures of Kafka and the store, and a partition that cannot
// continue stops alone.
func (p *Processor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer p.dead.Close()
	var background sync.WaitGroup
	background.Go(func() { p.register(ctx) })
	background.Go(func() {
		ticker := time.NewTicker(busiest.Every)
		defer ticker.Stop()
		p.busiest.Publish(ctx, ticker.C, p.cfg.Store, p.log)
	})
	defer background.Wait()
	defer cancel(nil)
	for ctx.Err() == nil {
		registry, _ := p.definitions.current()
		if err := p.join(ctx, registry.Topics()); err != nil {
			return err
		}
	}
	return failure(ctx)
}

// failure returns why the context ended; nil for a request to stop.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// errNotMember is the health of the group until partitions are assigned.
var errNotMember = errors.New("not a member yet")

// errNotResumed is the health of a partition until it is read.
var errNotResumed = errors.New("its progress was not read yet")
