package node

import (
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/tracing"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/pipeline/schemas"
	"github.com/weir-stream/weir/serve"
)

// wiring is the result of the settings. A node takes everything from the settings through it, so
// that a test can check that each setting is used.
type wiring struct {
	build       Build
	store       connect.Store
	access      *guard
	definitions []string
	asking      serve.Config
	listen      string
	profilesAt  string // address of the profiles; empty for none
	spans       tracing.Config
	lastAnswers time.Duration // the time for questions when the process ends
	tableLog    func() (scan.Config, func(), error)
	listClient  func() (*kafka.Client, error) // to change lists with

	// Parts of a processor; zero without that role.
	kafka      *kafka.Client
	applying   pipeline.Config
	registry   schemas.Config
	topics     connect.TopicSettings
	lastEvents time.Duration // the time for events when the process ends
}

// openStore opens the store that settings name, as connect.OpenStore does.
type openStore func(cfg *config.Config, questions bool, log *slog.Logger) (connect.Store, error)

// newWiring makes the parts of a process. It makes no requests to Kafka and the store yet.
func newWiring(cfg *config.Config, open openStore, roles Roles, b Build, log *slog.Logger) (*wiring, error) {
	access, err := newGuard(cfg.API, log)
	if err != nil {
		return nil, err
	}
	w := &wiring{
		build: b, access: access, definitions: cfg.Features, listen: cfg.API.Listen,
		profilesAt: cfg.Profiles.Listen, lastAnswers: cfg.API.ShutdownTimeout,
		spans: tracing.Config{
			Endpoint: cfg.Tracing.Endpoint, SampleRatio: cfg.Tracing.SampleRatio, Version: b.Release, Logger: log,
		},
	}
	w.listClient = sync.OnceValues(func() (*kafka.Client, error) { return connect.KafkaClient(cfg) })
	w.tableLog = func() (scan.Config, func(), error) { return connect.Log(cfg) } // only definitions with tables need Kafka to answer
	if roles.Processor {
		if err := w.addProcessor(cfg); err != nil {
			return nil, err
		}
	}
	if w.store, err = open(cfg, roles.API, log); err != nil {
		return nil, err
	}
	w.asking = serve.Config{
		Reader: w.store, StoreName: w.store.Name(), FromReplicas: w.store.FromReplicas(),
		Limits: serve.Limits{
			Body: int64(cfg.API.MaxBodyBytes), Values: cfg.API.MaxValues, Timeout: cfg.API.Timeout,
			Answer: int64(cfg.API.MaxAnswerBytes), Concurrent: cfg.API.MaxConcurrent, InFlight: int64(cfg.API.MaxInFlight),
		},
		Access: access.rules(), Logger: log,
	}
	return w, nil
}

func (w *wiring) addProcessor(cfg *config.Config) error {
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return err
	}
	k, p := cfg.Kafka, cfg.Processor
	w.kafka = &kafka.Client{Addr: kafka.TCP(k.Brokers...), Transport: transport, Timeout: 10 * time.Second}
	w.topics = connect.TopicSettings{Create: k.CreateTopics, DeadLetters: k.DeadLetterTopic, Partitions: k.TopicPartitions, Replication: k.TopicReplication}
	w.lastEvents = p.ShutdownTimeout
	if w.registry.Client, err = cfg.SchemaRegistry(); err != nil {
		return err
	}
	w.registry.Timeout = cfg.Registry.Timeout
	w.applying = pipeline.Config{
		Namespace: cfg.Namespace,
		Transport: transport, Brokers: k.Brokers, Group: k.Group, GroupInstanceID: k.GroupInstanceID,
		Isolation: connect.Isolation(cfg), Recovery: recovery.Rules{Start: recovery.Start(k.Start), ContinueOnLoss: k.OnDataLoss == "continue"},
		Backfill: cfg.Backfill.Mode == "auto", BackfillRate: cfg.Backfill.Rate,
		SetBrokenAside:  k.OnBrokenBatch == "set_aside",
		SetDamagedAside: k.OnDamagedBatch == "set_aside",
		DeadLetterTopic: k.DeadLetterTopic, MaxRecordBytes: int(k.MaxRecordBytes),
		Workers: p.WorkerCount(), MaxEvents: p.Batch.MaxEvents, MaxBytes: int(p.Batch.MaxBytes), Freshness: p.Freshness,
		CommitInterval: p.CommitInterval, ShutdownTimeout: p.ShutdownTimeout,
		SessionTimeout: k.SessionTimeout, RebalanceTimeout: k.RebalanceTimeout, HeartbeatInterval: k.HeartbeatInterval,
		FetchMaxBytes: int32(k.Fetch.MaxBytes), FetchPartitionMaxBytes: int32(k.Fetch.PartitionMaxBytes),
	}
	return nil
}
