package pipeline

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/store"
)

// Config configures a Processor. A field is required unless its comment says what its zero value means.
type Config struct {
	Registry *features.Registry // to begin with; see Processor.Reload
	Store    store.Store
	// Namespace is the store's. Dead letters name it, and copies of them count only in it.
	Namespace string

	Transport *kafka.Transport
	Brokers   []string
	Group     string
	// GroupInstanceID makes the processor a static member of the group: its partitions wait for it
	// while it restarts. Empty for a dynamic member.
	GroupInstanceID string
	Isolation       fetch.Isolation // by default ReadCommitted
	Recovery        recovery.Rules  // see there for the defaults
	// SetBrokenAside skips a batch that was written so that it cannot be decoded, and SetDamagedAside one that was damaged
	// since, each with a dead letter that names its offsets. By default the partition stops there.
	SetBrokenAside, SetDamagedAside bool
	// Backfill fills new features with records that were applied before, using BackfillRate of a
	// core; see package backfill.
	Backfill     bool
	BackfillRate float64 // by default 0.5
	// Schemas supplies the schemas that records name, and registers those of enriched events; nil if
	// there are neither.
	Schemas Schemas
	// Tables are the tables that the features of enriched events look up; nil if they look up none.
	Tables enrich.Tables
	// DeadLetterTopic receives the records that cannot be mapped.
	DeadLetterTopic string
	// MaxRecordBytes is the size of a record's value above which it is poison; by default 1 MiB.
	MaxRecordBytes int

	// Workers is how many batches may be under way at once; by default 1.
	Workers int
	// A batch is what was fetched since the one before, at most MaxEvents records or
	// MaxBytes bytes of their values.
	MaxEvents, MaxBytes int
	// Freshness is how long an event may wait for others, so that they are fetched and applied together; by default
	// 24 ms. It waits for less if enoughOfShard events for each shard are expected sooner.
	Freshness time.Duration

	CommitInterval  time.Duration // by default 1 s
	BalanceInterval time.Duration // how often to check whether one worker can process all partitions; by default 1 s
	BindInterval    time.Duration // how often to check whether generations being filled are complete, 30 times as long if none is; by default 2 s
	// Patience is how long partitions of enriched events that are ahead of others wait for one that gets no further; by default 10 s.
	Patience        time.Duration
	ShutdownTimeout time.Duration // for flushing when partitions are released; by default 20 s

	SessionTimeout    time.Duration // by default 30 s
	RebalanceTimeout  time.Duration // by default 30 s
	HeartbeatInterval time.Duration // by default 3 s

	FetchMaxBytes, FetchPartitionMaxBytes int32 // by default 16 MiB and 1 MiB, see fetch.PollerConfig

	Metrics prometheus.Registerer // by default a registry of its own
	Logger  *slog.Logger          // by default slog.Default()
	// TracerProvider receives spans of batches; nil makes none.
	TracerProvider trace.TracerProvider
}

func (c Config) withDefaults() Config {
	c.Recovery = c.Recovery.WithDefaults()
	c.MaxRecordBytes = cmp.Or(c.MaxRecordBytes, 1<<20)
	c.Workers = cmp.Or(c.Workers, 1)
	c.Freshness = cmp.Or(c.Freshness, 24*time.Millisecond)
	c.CommitInterval = cmp.Or(c.CommitInterval, time.Second)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, 20*time.Second)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 30*time.Second)
	c.RebalanceTimeout = cmp.Or(c.RebalanceTimeout, 30*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, 3*time.Second)
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
