// Package node is one process of weir run: a processor, an API or both, wired to Kafka and a
// store as the settings say. Only wiring.go passes settings to the parts.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/tracing"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/follow"
	"github.com/weir-stream/weir/pipeline/schemas"
	"github.com/weir-stream/weir/serve"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/store"
)

// Node is one process: a processor, an API or both, wired to Kafka and a store.
type Node struct {
	*wiring
	reloader  *reloader
	tables    *follow.Follower
	hadTables atomic.Bool         // all tables were whole at the same time
	answers   bool                // questions, and not only enriched events
	processor *pipeline.Processor // nil without that role
	schemas   *schemas.Cache      // of the processor
	api       *serve.Server
	profiles  *profiles            // nil without
	tracing   trace.TracerProvider // nil without tracing
	// endTracing sends the remaining spans.
	endTracing func(context.Context) error
	log        *slog.Logger
	metrics    *prometheus.Registry
	// waits is why the processor cannot begin yet; nil once it has begun.
	waits atomic.Pointer[error]
}

// Addr returns the address at which questions are answered.
func (n *Node) Addr() net.Addr { return n.api.Addr() }

// Registry returns the definitions in use.
func (n *Node) Registry() *features.Registry { return n.reloader.registry() }

// Stats returns the processor's statistics.
func (n *Node) Stats() pipeline.Stats { return n.processor.Stats() }

// Ready returns why the processor does not work properly.
func (n *Node) Ready(ctx context.Context) error {
	if err := n.waits.Load(); err != nil {
		return *err
	}
	return n.processor.Ready(ctx)
}

// Describe describes all metrics of the process.
func (n *Node) Describe(descriptions chan<- *prometheus.Desc) { n.metrics.Describe(descriptions) }

// New wires a process and starts to answer on api.listen. It asks the store for the namespace's layout, and makes no
// requests to Kafka yet. The caller must call Run, which also closes what New has opened.
func New(cfg *config.Config, registry *features.Registry, roles Roles, b Build, log *slog.Logger) (*Node, error) {
	w, err := newWiring(cfg, connect.OpenStore, roles, b, log)
	if err != nil {
		return nil, err
	}
	return startNode(w, registry, roles, log)
}

// startNode starts the parts of the wiring.
func startNode(w *wiring, registry *features.Registry, roles Roles, log *slog.Logger) (n *Node, err error) {
	metrics := prometheus.NewRegistry()
	n = &Node{wiring: w, log: log, metrics: metrics}
	if n.tracing, n.endTracing, err = tracing.Start(context.Background(), w.spans); err != nil {
		return nil, errors.Join(err, n.store.Close())
	}
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		n.store, w.build.metric())
	n.tables = follow.New(follow.Config{Kafka: n.tableLog, Log: log})
	metrics.MustRegister(n.tables)
	n.answers = roles.API
	n.tables.Take(lookedUp(registry, n.answers))
	n.reloader = newReloader(w.definitions, registry, n.take, log, metrics)
	// A namespace with another layout is as unusable as an unreachable store.
	checks := []status.Check{{Name: strings.ToLower(n.store.Name()), Check: n.store.Ready}}
	if roles.Processor {
		if err := n.addProcessor(metrics); err != nil {
			return nil, errors.Join(err, n.close())
		}
		checks = append(checks, status.Check{Name: "processor", Check: n.Ready})
	}
	checks = append(checks, status.Check{Name: "tables", Check: n.tablesReady})
	n.adopt()
	c := w.asking
	c.Tables = n.tables
	c.Registry, c.Definitions, c.Checks, c.DeadLetters = n.reloader.registry, n.reloader.definitions, checks, n.deadLetters()
	c.Backfills, c.Tools = n.backfills(), n.tools()
	c.Gatherer, c.Registerer, c.TracerProvider = metrics, metrics, n.tracing
	handler := serve.New(c)
	if !roles.API {
		handler = withoutQuestions(handler)
	}
	if n.api, err = serve.Start(w.listen, handler, n.access.tls(), log); err != nil {
		return nil, errors.Join(err, n.close())
	}
	n.access.warn(n.api.Addr()) // also without questions: a processor shows the contents of records
	if n.profiles, err = startProfiles(w.profilesAt, n.access.hosts(), log); err != nil {
		return nil, errors.Join(err, n.api.Shutdown(context.Background()), n.close())
	}
	return n, nil
}

// adoptWithin is how long the start of a process waits for the store.
const adoptWithin = 2 * time.Second

// adopt takes the number of shards from the namespace, before anything uses the store: the setting is for new
// namespaces only. If the store is unavailable, the setting is used until it answers.
func (n *Node) adopt() {
	ctx, cancel := context.WithTimeout(context.Background(), adoptWithin)
	defer cancel()
	if err := n.store.Adopt(ctx); err != nil {
		n.log.Debug("the layout of the namespace is not known yet", "error", err)
	}
}

// close closes a node that was never run.
func (n *Node) close() error {
	n.tables.Close()
	return errors.Join(n.store.Close(), n.endTracing(context.Background()))
}

// deadLetters lists the last records that the processor has set aside; nil without a processor.
func (n *Node) deadLetters() func() []status.DeadLetter {
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

// backfills lists the processor's backfills; nil without a processor.
func (n *Node) backfills() func() []status.Backfill {
	if n.processor == nil {
		return nil
	}
	return func() (list []status.Backfill) {
		for _, b := range n.processor.Backfills() {
			s := status.Backfill{
				Features: append([]string{}, b.Features...), Topic: b.Topic, Applied: b.Applied, Total: b.Total, Share: float64(b.Applied) / float64(max(1, b.Total)),
				Rate: b.Rate, SecondsLeft: int64(b.Left / time.Second),
			}
			if b.Files.Count > 0 {
				s.Files = &status.Files{Count: b.Files.Count, Applied: b.Files.Applied, Total: b.Files.Rows}
			}
			list = append(list, s)
		}
		return list
	}
}

// withoutQuestions serves only what operators ask of every process.
func withoutQuestions(handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/status", "/v1/definitions", "/v1/preview", "/v1/dead-letters", "/v1/greatest-keys", "/{$}", "/page/"} {
		mux.Handle(path, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply.Fail(w, reply.Errorf(reply.UnknownPath, "this process does not answer %s: ask one with the role api", reply.Quote(r.URL.Path)))
	})
	return mux
}

func (n *Node) addProcessor(metrics prometheus.Registerer) error {
	if len(n.reloader.registry().Streams) == 0 {
		return errNoStreams
	}
	if _, err := connect.TopicNames(n.reloader.registry(), n.topics.DeadLetters); err != nil {
		return err
	}
	s := n.registry
	s.Metrics, s.Logger = metrics, n.log
	n.schemas = schemas.New(s)
	c := n.applying
	c.Schemas, c.Tables = n.schemas, n.tables
	c.Registry, c.Store, c.Metrics, c.TracerProvider, c.Logger = n.reloader.registry(), n.store, metrics, n.tracing, n.log
	n.processor = pipeline.New(c)
	return nil
}

// errNoStreams refuses definitions without work for a processor.
var errNoStreams = errors.New("no stream is defined")

// take replaces the definitions. It refuses those that need a missing topic: the processor would
// wait for it, and process no other.
func (n *Node) take(ctx context.Context, r *features.Registry) error {
	if n.processor == nil {
		n.tables.Take(lookedUp(r, n.answers))
		return nil
	}
	if len(r.Streams) == 0 {
		return errNoStreams
	}
	if err := connect.EnsureTopics(ctx, n.kafka, n.topics, r); err != nil {
		return err
	}
	n.tables.Take(lookedUp(r, n.answers))
	n.processor.Reload(r)
	return nil
}

// Run works until the context ends, then finishes what is under way within the configured times. Its error is
// permanent; it waits while Kafka or the store is unavailable.
func (n *Node) Run(ctx context.Context) error {
	defer func() { _ = n.store.Close() }()
	defer n.tables.Close()
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
	parts.Go(func() { n.store.Watch(ctx) })
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
func (n *Node) answer(ctx context.Context) error {
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

// process applies events once everything that it needs exists.
func (n *Node) process(ctx context.Context) error {
	prepare := n.store.CheckLayout
	if n.processor != nil {
		prepare = n.store.Create
	}
	begin := func(ctx context.Context) error {
		if err := n.store.CheckEviction(ctx); err != nil {
			return err
		}
		return prepare(ctx)
	}
	if err := n.waitFor(ctx, n.store.Name(), begin); err != nil || n.processor == nil {
		return err
	}
	err := n.waitFor(ctx, "Kafka", func(ctx context.Context) error {
		return connect.EnsureTopics(ctx, n.kafka, n.topics, n.reloader.registry())
	})
	if err != nil {
		return err
	}
	defer n.schemas.Close()
	return n.processor.Run(ctx)
}

// waitSaidEach is how often the log says that the process still waits; /readyz always does.
const waitSaidEach = 30 * time.Second

// waitFor retries each second until there is a result, or a permanent error.
func (n *Node) waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	var began, said time.Time // zero before the first failure
	for {
		err := ask(ctx)
		if err == nil || ctx.Err() != nil {
			n.waits.Store(nil)
			if err == nil && !began.IsZero() {
				n.log.Info("no longer waiting for "+what, "after", time.Since(began).Round(time.Second))
			}
			return nil
		}
		_, missing := errors.AsType[connect.MissingTopicsError](err)
		if missing || errors.Is(err, store.ErrLayout) || errors.Is(err, store.ErrEvicts) {
			return fmt.Errorf("%s: %w", what, err)
		}
		now := time.Now()
		if began.IsZero() {
			began = now
		}
		if now.Sub(said) >= waitSaidEach {
			said = now
			n.log.Warn("waiting for "+what, "error", err, "for", now.Sub(began).Round(time.Second))
		}
		why := fmt.Errorf("waiting for %s: %w", what, err)
		n.waits.Store(&why)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
