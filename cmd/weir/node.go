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
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/serve"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// node is one process: a processor, an API or both, wired to Kafka and Redis.
type node struct {
	cfg       *config.Config
	access    *access
	reloader  *reloader
	redis     redis.UniversalClient
	replicas  *redis.ClusterClient // nil where questions are read from masters
	store     *redisstore.Store
	kafka     *kafka.Client       // nil without the role of a processor
	processor *pipeline.Processor // nil without the role
	api       *serve.Server
	profiles  *profiles            // nil without
	tracing   trace.TracerProvider // nil without tracing
	// endTracing sends the spans that are left.
	endTracing func(context.Context) error
	log        *slog.Logger
}

// newNode wires a process and begins to answer on api.listen. Nothing is asked
// of Kafka and Redis yet. Run the node; it closes what newNode has opened.
func newNode(cfg *config.Config, registry *features.Registry, roles roles, log *slog.Logger) (*node, error) {
	access, err := newAccess(cfg.API, log)
	if err != nil {
		return nil, err
	}
	client, err := cfg.RedisClient()
	if err != nil {
		return nil, err
	}
	n := &node{cfg: cfg, access: access, redis: client, log: log}
	if err := n.openStore(roles); err != nil {
		return nil, errors.Join(err, n.closeRedis())
	}
	if err := n.startTracing(); err != nil {
		return nil, errors.Join(err, n.closeRedis())
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		poolMetrics{client, n.replicas, n.unavailable})
	n.reloader = newReloader(cfg.Features, registry, n.take, log, metrics)
	// A namespace of another layout is as little use as a Redis that is away.
	checks := []serve.Check{{Name: "redis", Check: n.store.Ready}}
	if roles.processor {
		if err := n.addProcessor(metrics); err != nil {
			return nil, errors.Join(err, n.close())
		}
		checks = append(checks, serve.Check{Name: "processor", Check: n.processor.Ready})
	}
	handler := serve.New(serve.Config{
		DeadLetters: n.deadLetters(),
		Registry:    n.reloader.registry,
		Reader:      n.store, FromReplicas: n.replicas != nil,
		Definitions: n.reloader.definitions,
		Checks:      checks,
		Limits: serve.Limits{Body: int64(cfg.API.MaxBodyBytes), Values: cfg.API.MaxValues, Timeout: cfg.API.Timeout,
			Answer: int64(cfg.API.MaxAnswerBytes), Concurrent: cfg.API.MaxConcurrent, InFlight: int64(cfg.API.MaxInFlight)},
		Access:   n.access.rules(),
		Gatherer: metrics, Registerer: metrics, TracerProvider: n.tracing, Logger: log,
	})
	if !roles.api {
		handler = withoutQuestions(handler)
	}
	if n.api, err = serve.StartTLS(cfg.API.Listen, handler, n.access.tls(), log); err != nil {
		return nil, errors.Join(err, n.close())
	}
	if roles.api {
		n.access.warn(n.api.Addr())
	}
	if n.profiles, err = startProfiles(cfg.Profiles.Listen, n.access.hosts(), log); err != nil {
		return nil, errors.Join(err, n.api.Shutdown(context.Background()), n.close())
	}
	return n, nil
}

// openStore makes the store of the state, and lets questions read from replicas
// where the settings say so.
func (n *node) openStore(roles roles) (err error) {
	var reading []redisstore.Option
	if roles.api {
		if n.replicas, reading, err = openReplicas(n.cfg, n.log); err != nil {
			return err
		}
	}
	n.store, err = newStore(n.cfg, n.redis, append(reading, redisstore.NoteMasters(n.noteMaster))...)
	return err
}

// noteMaster tells of a Redis master that does not answer, or does again.
func (n *node) noteMaster(address string, err error) {
	if err != nil {
		n.log.Error("a Redis master does not answer; it is asked again in the background", "address", address, "error", err)
		return
	}
	n.log.Info("a Redis master answers again", "address", address)
}

// unavailable is how many Redis masters do not answer, and how many shards they hold.
func (n *node) unavailable() (masters, shards int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list := n.store.Unavailable(ctx)
	for _, m := range list {
		shards += m.Shards
	}
	return len(list), shards
}

// close closes what a node has opened that was never run.
func (n *node) close() error { return errors.Join(n.closeRedis(), n.endTracing(context.Background())) }

// closeRedis ends the connections to Redis.
func (n *node) closeRedis() error {
	err := n.redis.Close()
	if n.replicas != nil {
		err = errors.Join(err, n.replicas.Close())
	}
	return err
}

// deadLetters tells of the last that the processor has set aside; nil without one.
func (n *node) deadLetters() func() []serve.DeadLetter {
	if n.processor == nil {
		return nil
	}
	return func() (letters []serve.DeadLetter) {
		for _, d := range n.processor.DeadLetters() {
			letters = append(letters, serve.DeadLetter{
				Topic: d.Partition.Topic, Partition: d.Partition.ID, Offset: d.Offset, Timestamp: d.Timestamp,
				Stream: d.Stream, Reason: string(d.Reason), Path: d.Path,
			})
		}
		return letters
	}
}

// withoutQuestions leaves what operators ask of every process.
func withoutQuestions(handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/status", "/{$}", "/page/"} {
		mux.Handle(path, handler)
	}
	return mux
}

func (n *node) addProcessor(metrics prometheus.Registerer) error {
	if _, err := topicNames(n.reloader.registry(), n.cfg.Kafka); err != nil {
		return err
	}
	transport, err := n.cfg.KafkaTransport()
	if err != nil {
		return err
	}
	k, p := n.cfg.Kafka, n.cfg.Processor
	n.kafka = &kafka.Client{Addr: kafka.TCP(k.Brokers...), Transport: transport, Timeout: 10 * time.Second}
	n.processor = pipeline.New(pipeline.Config{
		Registry:  n.reloader.registry(),
		Store:     n.store,
		Transport: transport, Brokers: k.Brokers, Group: k.Group, GroupInstanceID: k.GroupInstanceID,
		Isolation: isolation(n.cfg), Start: pipeline.Start(k.Start), ContinueOnLoss: k.OnDataLoss == "continue",
		SetBrokenAside:  k.OnBrokenBatch == "set_aside",
		DeadLetterTopic: k.DeadLetterTopic, MaxRecordBytes: int(k.MaxRecordBytes),
		Workers: p.WorkerCount(), MaxEvents: p.Batch.MaxEvents, MaxBytes: int(p.Batch.MaxBytes), Linger: p.Batch.Linger,
		CommitInterval: p.CommitInterval, ShutdownTimeout: p.ShutdownTimeout,
		SessionTimeout: k.SessionTimeout, RebalanceTimeout: k.RebalanceTimeout, HeartbeatInterval: k.HeartbeatInterval,
		FetchMinBytes: int32(k.Fetch.MinBytes), FetchMaxBytes: int32(k.Fetch.MaxBytes),
		FetchPartitionMaxBytes: int32(k.Fetch.PartitionMaxBytes), FetchMaxWait: k.Fetch.MaxWait,
		Settle:  serve.MaxHistoryAge + 100*time.Millisecond,
		Metrics: metrics, TracerProvider: n.tracing, Logger: n.log,
	})
	return nil
}

// errNoStreams refuses definitions that a processor has nothing to do for.
var errNoStreams = errors.New("no stream is defined")

// take puts other definitions to work. Those that need a topic which is not
// there are refused: the processor would wait for it, and carry no other.
func (n *node) take(ctx context.Context, r *features.Registry) error {
	if n.processor == nil {
		return nil
	}
	if len(r.Streams) == 0 {
		return errNoStreams
	}
	if err := ensureTopics(ctx, n.kafka, n.cfg.Kafka, r); err != nil {
		return err
	}
	n.processor.Reload(r)
	return nil
}

// isolation is that with which events are read.
func isolation(cfg *config.Config) fetch.Isolation {
	if cfg.Kafka.Isolation == "read_uncommitted" {
		return fetch.ReadUncommitted
	}
	return fetch.ReadCommitted
}

// run works until the context ends, then lets what is under way finish in the
// set times. Its error says what it cannot work with; a Kafka or Redis that is
// away is waited for.
func (n *node) run(ctx context.Context) error {
	defer func() { _ = n.closeRedis() }()
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
	parts.Go(func() {
		looks := time.NewTicker(lookEach)
		defer looks.Stop()
		n.reloader.run(ctx, looks.C)
	})
	parts.Go(func() {
		looks := time.NewTicker(lookEach)
		defer looks.Stop()
		n.access.run(ctx, looks.C)
	})
	if n.replicas != nil {
		parts.Go(func() { n.store.WatchReplicas(ctx) })
	}
	if n.profiles != nil {
		parts.Go(func() { n.profiles.run(ctx) })
	}
	stopped := n.lastMoment(ctx)
	parts.Wait()
	n.flushSpans(<-stopped)
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
		return ensureTopics(ctx, n.kafka, n.cfg.Kafka, n.reloader.registry())
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
		_, layout := errors.AsType[*redisstore.LayoutError](err)
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
