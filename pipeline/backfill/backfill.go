package backfill

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

const (
	lookInterval   = time.Second // how often to look for what is left
	reportInterval = time.Minute // between two log lines
)

// Config configures a Backfiller. All fields without a default are required.
type Config struct {
	Store     store.Store
	Namespace string // of the store
	Transport *kafka.Transport
	Brokers   []string
	Isolation fetch.Isolation
	// MaxRecordBytes is the size of a record's value above which it is poison, as for live
	// events.
	MaxRecordBytes int
	// DeadLetterTopic is the topic that DeadLetters writes to.
	DeadLetterTopic string
	// DeadLetters writes to the topic of dead letters, which also holds which records fills have skipped.
	DeadLetters interface {
		WriteMessages(context.Context, ...kafka.Message) error
	}
	// Schemas supplies the schemas that records name; nil if no stream needs them.
	Schemas interface {
		Supply(context.Context, *record.MissingSchema) error
	}
	// Rate is the greatest share of a core to use, above 0 and up to 1; by default 0.5. Time spent
	// waiting for the store counts.
	Rate float64
	// A batch has at most MaxEvents records or MaxBytes bytes of their values.
	MaxEvents, MaxBytes int

	// Live counts the batches of live events in the process, to which fills give way; by default there are none.
	Live *Live

	Metrics prometheus.Registerer // by default a registry of its own
	Logger  *slog.Logger          // by default slog.Default()
}

func (c Config) withDefaults() Config {
	c.Rate = cmp.Or(c.Rate, 0.5)
	c.MaxRecordBytes = cmp.Or(c.MaxRecordBytes, 1<<20)
	if c.Live == nil {
		c.Live = &Live{}
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Backfiller fills the partitions of one member of the group.
type Backfiller struct {
	cfg     Config
	metrics *metrics
	turns   turns
	running running
}

// New makes a backfiller.
func New(cfg Config) *Backfiller {
	cfg = cfg.withDefaults()
	return &Backfiller{cfg: cfg, metrics: newMetrics(cfg.Metrics), turns: turns{rate: cfg.Rate, live: cfg.Live},
		running: running{all: map[fillOf]*runningFill{}}}
}

// Work is what to fill.
type Work struct {
	Registry *features.Registry
	// Partitions returns the partitions to fill, of any topic, as they are now.
	Partitions func() []state.Partition
	// Of selects the fills; nil means all.
	Of func(*state.Fill) bool
	// Until, if not nil, is called with the progress of a fill in these partitions each time the progress is read. If
	// it returns true, the work on the fill ends.
	Until func(*state.Fill, Progress) bool
}

// Progress is the progress of a fill in partitions.
type Progress struct {
	Filled, All int64 // offsets
	Done        bool
	// Broken are the partitions whose fill can never be complete.
	Broken []state.Partition
}

// Run fills the columns of the definitions' registered plan, until the context ends or Until has ended each fill. It
// waits for Kafka or a store that is unavailable.
func (b *Backfiller) Run(ctx context.Context, w Work) {
	plan := w.Registry.Plan()
	fills, ok := b.fills(ctx, plan)
	for ok {
		present, cancel := context.WithCancel(ctx)
		wait := b.work(present, w, fills)
		if ok = w.Until == nil; ok {
			fills, ok = b.otherFills(ctx, plan, fills)
			cancel()
		}
		wait()
		cancel()
	}
}

// work works on fills, until the context ends or Until has ended each of them. It returns a function
// that waits for that.
func (b *Backfiller) work(ctx context.Context, w Work, fills []*state.Fill) (wait func()) {
	var running sync.WaitGroup
	for _, f := range fills {
		if w.Of != nil && !w.Of(f) {
			continue
		}
		before := slices.DeleteFunc(slices.Clone(fills), func(other *state.Fill) bool { return !f.PartOf(other) })
		running.Go(func() {
			r := newRunner(b, w, f, before)
			defer r.close()
			r.run(ctx)
		})
	}
	return running.Wait
}

// otherFills waits until the fills of the plan differ from the given ones. A store that went back in time, such as a
// master that started empty before a replica replaced it, may know fewer fills for a while.
func (b *Backfiller) otherFills(ctx context.Context, p *state.Plan, same []*state.Fill) (fills []*state.Fill, ok bool) {
	for retry.Wait(ctx, restful*lookInterval) {
		fills, ok = b.fills(ctx, p)
		if !ok || !slices.EqualFunc(fills, same, func(a, b *state.Fill) bool { return a.ID == b.ID }) {
			return fills, ok
		}
	}
	return nil, false
}

// fills finds the fills of a plan. It waits while the store is unavailable.
func (b *Backfiller) fills(ctx context.Context, p *state.Plan) ([]*state.Fill, bool) {
	trouble := retry.Trouble{Log: b.cfg.Logger, What: "reading what is to be backfilled"}
	for {
		fills, err := b.cfg.Store.Fills(ctx, p)
		switch {
		case err == nil:
			trouble.Over()
			return fills, true
		case ctx.Err() != nil || !retry.Wait(ctx, trouble.Failed(err)):
			return nil, false
		}
	}
}

// ofTopics returns the partitions of topics that a fill covers.
func ofTopics(f *state.Fill, partitions []state.Partition) []state.Partition {
	return slices.DeleteFunc(slices.Clone(partitions), func(p state.Partition) bool { return len(f.Columns[p.Topic]) == 0 })
}

// write applies a batch. It waits while the store is unavailable, and reports its errors. It returns how long the store
// took, without the time for which it was unavailable, and whether it could apply the batch before the context ended.
func write(ctx context.Context, w store.Writer, b *state.Batch, trouble func(error)) (took time.Duration, written bool) {
	b.Spare = b.Now // live events prune, by what they have reached
	for {
		began := time.Now()
		err := w.Apply(ctx, b)
		if err == nil {
			return time.Since(began), true
		}
		if ctx.Err() == nil {
			trouble(err)
		}
		if !retry.Wait(ctx, lookInterval) {
			return 0, false
		}
	}
}

// turns lets one runner at a time work, for a share of the time, and gives way to live events.
type turns struct {
	mu   sync.Mutex
	rate float64
	live *Live
}

// take works, and then rests. work returns how long batches were written in the background, which also counts as work,
// less the time for which it waited for something that was unavailable.
func (t *turns) take(ctx context.Context, work func() (beside time.Duration)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live.giveWay(ctx)
	began := time.Now()
	beside := work()
	took := time.Since(began) + beside
	retry.Wait(ctx, time.Duration(float64(took)*(1-t.rate)/t.rate))
}
