package connect

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	igniteconn "github.com/weir-stream/weir/cmd/weir/connect/ignite"
	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/operate/doctor"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store"
)

// Store is the store of the settings' namespace, with what a process needs beside the contract. It describes and
// collects the metrics of its connections.
type Store interface {
	store.Store
	prometheus.Collector

	// Name returns the store's name for messages.
	Name() string
	// Adopt takes the number of shards from the namespace, if it exists, and then does what CheckLayout does. No other
	// method may be called before or meanwhile.
	Adopt(ctx context.Context) error
	// CheckLayout compares the namespace with the settings; one that does not exist yet fits. The
	// error is a store.ErrLayout if they differ.
	CheckLayout(ctx context.Context) error
	// CheckEviction returns a store.ErrEvicts if servers delete state when their memory is full, and the settings do not
	// allow that.
	CheckEviction(ctx context.Context) error
	// Ready returns nil if the namespace can be used. The error has a method Degraded if only a part of the store
	// cannot be reached.
	Ready(ctx context.Context) error
	// FromReplicas reports whether ReadReplica may read from replicas. Watch must then run.
	FromReplicas() bool
	// Watch tracks what ReadReplica needs, and how many shards the namespace has, until the context
	// ends.
	Watch(ctx context.Context)
	// AwaitReplicas waits until all copies have what was written so far, but no longer than within. It fails if that is
	// unknown.
	AwaitReplicas(ctx context.Context, within time.Duration) ([]store.Copies, error)
	// Greatest lists the longest keys, longest first, at most that many, of those that it looks at
	// while its patience lasts. An error with keys is that of a part of the store.
	Greatest(ctx context.Context, most int, patience time.Duration) (state.LongKeys, error)
	// CountKeys counts the keys with state by group. Of a server with more than `most` keys it looks at about as many.
	CountKeys(ctx context.Context, most int64) (state.KeyCount, error)
	// Inspect reads the state of an entity in the group of a series, unchanged.
	Inspect(ctx context.Context, series *state.Series, entity string) (packed.Held, error)
	// ShardProgress reads the record of a shard.
	ShardProgress(ctx context.Context, shard int) (*progress.Record, error)
	// Secret returns the secret with which values are hashed.
	Secret(ctx context.Context) (state.Secret, error)
	// Close closes the connections.
	Close() error
}

// OpenStore opens the store that the settings name. It makes no requests yet. With questions, these read from replicas
// if the settings say so. Lost connections are logged.
func OpenStore(cfg *config.Config, questions bool, log *slog.Logger) (Store, error) {
	if cfg.Store.Type == "ignite" {
		d, err := igniteconn.Open(cfg, log)
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	d, err := redisconn.Open(cfg, questions, log)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// CheckStore checks the store that the settings name: with events, whether it can be written to, and with questions, the
// replicas that they are read from.
func CheckStore(ctx context.Context, cfg *config.Config, events, questions bool) doctor.Findings {
	if cfg.Store.Type == "ignite" {
		return igniteconn.Check(ctx, cfg)
	}
	return redisconn.Check(ctx, cfg, events, questions)
}

// LogStoreClient logs the messages of the store's client library, for the whole process.
func LogStoreClient(log *slog.Logger) { redisconn.LogTo(log) }
