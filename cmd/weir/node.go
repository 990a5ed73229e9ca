package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/serve"
	"github.com/weir-stream/weir/store"
)

// node is one process: a processor, an API or both, wired to Kafka and Redis.
type node struct {
	cfg       *config.Config
	registry  *features.Registry
	redis     redis.UniversalClient
	store     *store.Store
	kafka     *kafka.Client       // nil without the role of a processor
	processor *pipeline.Processor // nil without the role
	api       *serve.Server
	log       *slog.Logger
}

// newNode wires a process and begins to answer on api.listen. Nothing is asked
// of Kafka and Redis yet. Run the node; it closes what newNode has opened.
func newNode(cfg *config.Config, registry *features.Registry, roles roles, log *slog.Logger) (*node, error) {
	client, err := cfg.RedisClient()
	if err != nil {
		return nil, err
	}
	n := &node{cfg: cfg, registry: registry, redis: client, store: store.New(client, cfg.Namespace, cfg.Shards), log: log}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		poolMetrics{client})
	// A namespace of another layout is as little use as a Redis that is away.
	checks := []serve.Check{{Name: "redis", Check: n.store.CheckLayout}}
	if roles.processor {
		if err := n.addProcessor(metrics); err != nil {
			return nil, errors.Join(err, client.Close())
		}
		checks = append(checks, serve.Check{Name: "processor", Check: n.processor.Ready})
	}
	handler := serve.New(serve.Config{
		Registry: func() *features.Registry { return registry },
		Reader:   n.store,
		Checks:   checks,
		Limits:   serve.Limits{Body: int64(cfg.API.MaxBodyBytes), Values: cfg.API.MaxValues, Timeout: cfg.API.Timeout},
		Gatherer: metrics, Registerer: metrics, Logger: log,
	})
	if !roles.api {
		handler = withoutQuestions(handler)
	}
	if n.api, err = serve.Start(cfg.API.Listen, handler, log); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return n, nil
}

// withoutQuestions leaves what operators ask of every process.
func withoutQuestions(handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		mux.Handle(path, handler)
	}
	return mux
}

func (n *node) addProcessor(metrics prometheus.Registerer) error {
	transport, err := n.cfg.KafkaTransport()
	if err != nil {
		return err
	}
	dialer, err := n.cfg.KafkaDialer()
	if err != nil {
		return err
	}
	isolation := fetch.ReadCommitted
	if n.cfg.Kafka.Isolation == "read_uncommitted" {
		isolation = fetch.ReadUncommitted
	}
	k, p := n.cfg.Kafka, n.cfg.Processor
	n.kafka = &kafka.Client{Addr: kafka.TCP(k.Brokers...), Transport: transport, Timeout: 10 * time.Second}
	n.processor = pipeline.New(pipeline.Config{
		Registry:  n.registry,
		Store:     n.store,
		NewWriter: func() pipeline.Writer { return n.store.NewWriter() },
		Transport: transport, Dialer: dialer, Brokers: k.Brokers, Group: k.Group,
		Isolation: isolation, Start: pipeline.Start(k.Start), ContinueOnLoss: k.OnDataLoss == "continue",
		DeadLetterTopic: k.DeadLetterTopic, MaxRecordBytes: int(k.MaxRecordBytes),
		Workers: p.WorkerCount(), MaxEvents: p.Batch.MaxEvents, MaxBytes: int(p.Batch.MaxBytes), Linger: p.Batch.Linger,
		CommitInterval: p.CommitInterval, ShutdownTimeout: p.ShutdownTimeout,
		SessionTimeout: k.SessionTimeout, RebalanceTimeout: k.RebalanceTimeout, HeartbeatInterval: k.HeartbeatInterval,
		FetchMinBytes: int32(k.Fetch.MinBytes), FetchMaxBytes: int32(k.Fetch.MaxBytes),
		FetchPartitionMaxBytes: int32(k.Fetch.PartitionMaxBytes), FetchMaxWait: k.Fetch.MaxWait,
		Metrics: metrics, Logger: n.log,
	})
	return nil
}

// topics are those that the processor needs, dead letters last.
func (n *node) topics() []string { return append(n.registry.Topics(), n.cfg.Kafka.DeadLetterTopic) }

// run works until the context ends, then lets what is under way finish in the
// set times. Its error says what it cannot work with; a Kafka or Redis that is
// away is waited for.
func (n *node) run(ctx context.Context) error {
	defer n.redis.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var parts sync.WaitGroup
	parts.Go(func() {
		if err := n.answer(ctx); err != nil {
			cancel(err)
		}
	})
	parts.Go(func() {
		if err := n.process(ctx); err != nil {
			cancel(err)
		}
	})
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// answer waits for the end of the API.
func (n *node) answer(ctx context.Context) error {
	select {
	case err := <-n.api.Done():
		return err
	case <-ctx.Done():
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.cfg.API.ShutdownTimeout)
	defer cancel()
	if err := n.api.Shutdown(patient); err != nil {
		n.log.Warn("questions were cut off", "error", err)
	}
	return nil
}

// process applies events, once it is known that there is what it needs.
func (n *node) process(ctx context.Context) error {
	prepare := n.store.CheckLayout
	if n.processor != nil {
		prepare = n.store.Create
	}
	if err := n.waitFor(ctx, "Redis", prepare); err != nil || n.processor == nil {
		return err
	}
	err := n.waitFor(ctx, "Kafka", func(ctx context.Context) error {
		return ensureTopics(ctx, n.kafka, n.cfg.Kafka, n.topics())
	})
	if err != nil {
		return err
	}
	return n.processor.Run(ctx)
}

// waitFor asks again each second until there is an answer, or an error that no
// waiting will mend.
func (n *node) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		_, layout := errors.AsType[*store.LayoutError](err)
		_, missing := errors.AsType[missingTopicsError](err)
		if layout || missing {
			return fmt.Errorf("%s: %w", what, err)
		}
		n.log.Warn("waiting for "+what, "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
