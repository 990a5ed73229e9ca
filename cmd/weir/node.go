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
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/tracing"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/serve"
	"github.com/weir-stream/weir/serve/status"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// node is one process: a processor, an API or both, wired to Kafka and Redis.
type node struct {
	*wiring
	reloader  *reloader
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
	w, err := newWiring(cfg, roles, log)
	if err != nil {
		return nil, err
	}
	return startNode(w, registry, roles, log)
}

// startNode starts what the settings have made.
func startNode(w *wiring, registry *features.Registry, roles roles, log *slog.Logger) (n *node, err error) {
	n = &node{wiring: w, log: log}
	if n.tracing, n.endTracing, err = tracing.Start(context.Background(), w.spans); err != nil {
		return nil, errors.Join(err, n.closeRedis())
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		poolMetrics{n.redis, n.replicas, n.unavailable}, buildInfo())
	n.reloader = newReloader(w.definitions, registry, n.take, log, metrics)
	// A namespace of another layout is as little use as a Redis that is away.
	checks := []status.Check{{Name: "redis", Check: n.store.Ready}}
	if roles.processor {
		if err := n.addProcessor(metrics); err != nil {
			return nil, errors.Join(err, n.close())
		}
		checks = append(checks, status.Check{Name: "processor", Check: n.processor.Ready})
	}
	c := w.asking
	c.Registry, c.Definitions, c.Checks, c.DeadLetters = n.reloader.registry, n.reloader.definitions, checks, n.deadLetters()
	c.Gatherer, c.Registerer, c.TracerProvider = metrics, metrics, n.tracing
	handler := serve.New(c)
	if !roles.api {
		handler = withoutQuestions(handler)
	}
	if n.api, err = serve.StartTLS(w.listen, handler, n.access.tls(), log); err != nil {
		return nil, errors.Join(err, n.close())
	}
	if roles.api {
		n.access.warn(n.api.Addr())
	}
	if n.profiles, err = startProfiles(w.profilesAt, n.access.hosts(), log); err != nil {
		return nil, errors.Join(err, n.api.Shutdown(context.Background()), n.close())
	}
	return n, nil
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

// deadLetters tells of the last that the processor has set aside; nil without one.
func (n *node) deadLetters() func() []status.DeadLetter {
	if n.processor == nil {
		return nil
	}
	return func() (letters []status.DeadLetter) {
		for _, d := range n.processor.DeadLetters() {
			letters = append(letters, status.DeadLetter{
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
	if _, err := topicNames(n.reloader.registry(), n.topics.deadLetters); err != nil {
		return err
	}
	c := n.applying
	c.Registry, c.Store, c.Metrics, c.TracerProvider, c.Logger = n.reloader.registry(), n.store, metrics, n.tracing, n.log
	n.processor = pipeline.New(c)
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
	if err := ensureTopics(ctx, n.kafka, n.topics, r); err != nil {
		return err
	}
	n.processor.Reload(r)
	return nil
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
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.lastAnswers)
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
		return ensureTopics(ctx, n.kafka, n.topics, n.reloader.registry())
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
