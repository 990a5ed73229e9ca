package backfill

import (
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

// Config says what a Backfiller works on. All fields are required, but for those with a
// default.
type Config struct {
	Store     store.Store
	Transport *kafka.Transport
	Brokers   []string
	Isolation fetch.Isolation
	// MaxRecordBytes is the size of a record's value above which it is poison, as for live
	// events.
	MaxRecordBytes int
	// Schemas has those that records name; nil where no stream's do.
	Schemas interface {
		Supply(context.Context, *record.MissingSchema) error
	}
	// Rate is the share of a core that may be taken, above 0 and up to 1; by default 0.5. The
	// time in which the store is waited for counts.
	Rate      float64
	MaxEvents int           // of a batch; by default 2000
	MaxBytes  int           // of a batch's values; by default 4 MiB
	Look      time.Duration // between two looks at what is left; by default 1 s
	Report    time.Duration // between two lines of the log; by default 1 min

	Metrics prometheus.Registerer // by default a registry of its own
	Logger  *slog.Logger          // by default slog.Default()
}

func (c Config) withDefaults() Config {
	setDefault(&c.Rate, 0.5)
	setDefault(&c.MaxEvents, 2000)
	setDefault(&c.MaxBytes, 4<<20)
	setDefault(&c.MaxRecordBytes, 1<<20)
	setDefault(&c.Look, time.Second)
	setDefault(&c.Report, time.Minute)
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// Backfiller fills partitions of one member of the group.
type Backfiller struct {
	cfg     Config
	metrics *metrics
	turns   turns
}

// New makes a backfiller.
func New(cfg Config) *Backfiller {
	cfg = cfg.withDefaults()
	return &Backfiller{cfg: cfg, metrics: newMetrics(cfg.Metrics), turns: turns{rate: cfg.Rate}}
}

// Work is what is to be filled.
type Work struct {
	Registry *features.Registry
	// Partitions are those to fill, of any topic, as they are now.
	Partitions func() []state.Partition
	// Of says which fills are wanted; nil is all.
	Of func(*state.Fill) bool
	// Until, if not nil, is told of each fill how far it is with these partitions, each time
	// that was looked at. Where it returns true of a fill, no more of that is done.
	Until func(*state.Fill, Progress) bool
}

// Progress is how far a fill is with partitions.
type Progress struct {
	Filled, All int64 // offsets
	Done        bool
	// Broken are the partitions of which it will never be whole.
	Broken []state.Partition
}

// Run fills what the definitions' plan, which is registered, keeps until the context ends, or until it is told
// that each fill has done enough. A Kafka or a store that is away is waited for.
func (b *Backfiller) Run(ctx context.Context, w Work) {
	fills, ok := b.fills(ctx, w.Registry.Plan())
	if !ok {
		return
	}
	var running sync.WaitGroup
	for _, f := range fills {
		if w.Of != nil && !w.Of(f) {
			continue
		}
		running.Go(func() {
			r := newRunner(b, w, f)
			defer r.close()
			r.run(ctx)
		})
	}
	running.Wait()
}

// fills finds what is to be filled, however long the store is away.
func (b *Backfiller) fills(ctx context.Context, p *state.Plan) ([]*state.Fill, bool) {
	for {
		fills, err := b.cfg.Store.Fills(ctx, p)
		if err == nil {
			return fills, true
		}
		if !retry.Wait(ctx, b.cfg.Look) {
			return nil, false
		}
		b.cfg.Logger.Warn("what is to be backfilled cannot be read, trying again", "error", err)
	}
}

// ofTopics are the partitions whose topics a fill has something of.
func ofTopics(f *state.Fill, partitions []state.Partition) []state.Partition {
	return slices.DeleteFunc(slices.Clone(partitions), func(p state.Partition) bool { return len(f.Columns[p.Topic]) == 0 })
}

// turns lets one runner at a time work, for a share of the time.
type turns struct {
	mu   sync.Mutex
	rate float64
}

// take works, and then rests.
func (t *turns) take(ctx context.Context, work func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := time.Now()
	work()
	retry.Wait(ctx, time.Duration(float64(time.Since(began))*(1-t.rate)/t.rate))
}
