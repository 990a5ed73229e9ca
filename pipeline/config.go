package pipeline

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/store"
)

// Config says what a Processor works on. All fields are required, but for those
// with a default.
type Config struct {
	Registry *features.Registry // to begin with; see Processor.Reload
	Store    store.Store

	Transport *kafka.Transport
	Brokers   []string
	Group     string
	// GroupInstanceID makes the processor a static member of the group: what it
	// carries waits for it while it restarts. Empty for a dynamic one.
	GroupInstanceID string
	Isolation       fetch.Isolation
	Recovery        recovery.Rules
	// SetBrokenAside goes on behind a batch that cannot be decoded, with a dead
	// letter that names its offsets. By default its partition stops there.
	SetBrokenAside bool
	// Backfill fills what new features need with records that were applied before, for
	// BackfillRate of a core; see package backfill.
	Backfill     bool
	BackfillRate float64 // by default 0.5
	// Schemas has those that records name; nil where no stream's do.
	Schemas Schemas
	// DeadLetterTopic takes the records that cannot be mapped.
	DeadLetterTopic string
	// MaxRecordBytes is the size of a record's value above which it is poison.
	MaxRecordBytes int

	// Workers is how many batches may be under way at once; by default 1.
	Workers int
	// A batch is what was fetched since the one before, at most MaxEvents records or
	// MaxBytes bytes of their values.
	MaxEvents int // by default 2000
	MaxBytes  int // by default 4 MiB
	// Freshness is how long an event may wait for others, so that they are fetched and
	// applied together.
	Freshness time.Duration // by default 20 ms

	CommitInterval   time.Duration // by default 1 s
	RegisterInterval time.Duration // between two Register; by default 1 min
	BalanceInterval  time.Duration // between two looks whether one worker can carry all partitions; by default 1 s
	BindInterval     time.Duration // between two looks whether what is filled beside other state is whole; by default 2 s
	ShutdownTimeout  time.Duration // for flushing when partitions are given up; by default 20 s

	SessionTimeout    time.Duration // by default 30 s
	RebalanceTimeout  time.Duration // by default 30 s
	HeartbeatInterval time.Duration // by default 3 s

	FetchMaxBytes, FetchPartitionMaxBytes int32

	Metrics prometheus.Registerer // by default a registry of its own
	Logger  *slog.Logger          // by default slog.Default()
	// TracerProvider takes spans of batches; nil makes none.
	TracerProvider trace.TracerProvider
}

func (c Config) withDefaults() Config {
	c.Recovery = c.Recovery.WithDefaults()
	c.MaxRecordBytes = cmp.Or(c.MaxRecordBytes, 1<<20)
	c.Workers = cmp.Or(c.Workers, 1)
	c.MaxEvents = cmp.Or(c.MaxEvents, 2000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 4<<20)
	c.Freshness = cmp.Or(c.Freshness, 20*time.Millisecond)
	c.CommitInterval = cmp.Or(c.CommitInterval, time.Second)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, 20*time.Second)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 30*time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 30*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, 3*time.Second)
	c.RegisterInterval = cmp.Or(c.RegisterInterval, time.Minute)
	c.BalanceInterval = cmp.Or(c.BalanceInterval, time.Second)
	c.BindInterval = cmp.Or(c.BindInterval, 2*time.Second)
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}
