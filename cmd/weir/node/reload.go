package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/diff"
	"github.com/weir-stream/weir/internal/metric"
	"github.com/weir-stream/weir/serve/status"
)

const (
	// lookEach is how often definitions are checked. A change is loaded once it was found twice in
	// the same state: writing a file may take a moment.
	lookEach = 400 * time.Millisecond
	// takeAgain is how long to wait before valid definitions that could not be applied are tried
	// again, for example because a topic is missing.
	takeAgain = time.Second
	// pending is no fingerprint: definitions wait to be applied, so whatever is found is handled, those in use included.
	pending = "pending"
)

// reloader watches files of definitions and loads them when they change. It reads their content,
// however the files were replaced: written, renamed, or by the symbolic links of Kubernetes.
type reloader struct {
	paths []string
	// take applies definitions, or returns why it cannot.
	take    func(context.Context, *features.Registry) error
	now     func() time.Time
	log     *slog.Logger
	metrics *reloadMetrics

	seen    string    // fingerprint at the last look
	handled string    // that of the definitions last applied, or refused for their content; pending while some wait
	again   time.Time // when to try definitions again that could not be applied

	mu      sync.Mutex
	present *features.Registry
	last    *status.Reload
}

func newReloader(paths []string, r *features.Registry, take func(context.Context, *features.Registry) error,
	log *slog.Logger, metrics prometheus.Registerer) *reloader {
	w := &reloader{paths: paths, take: take, now: time.Now, log: log, metrics: newReloadMetrics(metrics), present: r}
	w.metrics.present(r)
	return w
}

// run checks the definitions at each tick until the context ends.
func (w *reloader) run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ticks:
			w.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// look loads definitions that have changed since the last ones handled.
func (w *reloader) look(ctx context.Context) {
	if len(w.paths) == 0 {
		return // the demo's are in the binary
	}
	found := definition.Fingerprint(w.paths...)
	before := w.seen
	w.seen = found
	if found != before {
		w.again = time.Time{}
		return
	}
	if found == w.handled || w.now().Before(w.again) {
		return
	}
	registry, err := definition.Load(w.paths...)
	if definition.Fingerprint(w.paths...) != found {
		return // they are still being written
	}
	first := w.handled == ""
	if err != nil {
		w.handled = found
		w.refuse(err)
		return
	}
	if registry.Same(w.registry()) {
		w.handled = found
		if !first {
			w.loaded(registry)
		}
		return
	}
	if err := w.take(ctx, registry); err != nil {
		w.handled, w.again = pending, w.now().Add(takeAgain)
		w.refuse(err)
		return
	}
	w.handled, w.again = found, time.Time{}
	w.loaded(registry)
}

func (w *reloader) loaded(r *features.Registry) {
	w.mu.Lock()
	before := w.present
	w.present, w.last = r, &status.Reload{At: w.now().UTC(), Loaded: true}
	w.mu.Unlock()
	w.metrics.reloaded("loaded", w.now())
	w.metrics.present(r)
	w.log.Info("definitions loaded", "version", r.Version(), "definitions", say.Summary(r))
	w.sayEffects(diff.Of(before, r))
}

// sayEffects logs of which features the answers differ for a time, and how.
func (w *reloader) sayEffects(d *diff.Difference) {
	for _, e := range d.Effects() {
		level := slog.LevelInfo
		if e.Loses {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, "a feature changes", "feature", e.Feature, "services", e.Services, "it", e.Effect)
	}
}

// refuse logs definitions that are refused, once for the same reasons.
func (w *reloader) refuse(err error) {
	w.mu.Lock()
	repeated := w.last != nil && w.last.Error == err.Error()
	if !repeated {
		w.last = &status.Reload{At: w.now().UTC(), Error: err.Error()}
	}
	w.mu.Unlock()
	if repeated {
		return
	}
	w.metrics.reloaded("refused", w.now())
	findings, ok := errors.AsType[definition.Findings](err)
	if !ok {
		w.log.Error("definitions refused; the previous ones stay in use", "error", err)
	}
	for _, f := range findings {
		w.log.Error("definitions refused; the previous ones stay in use", "finding", f.String())
	}
}

// registry returns the definitions in use.
func (w *reloader) registry() *features.Registry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.present
}

// definitions returns the part of /readyz about definitions.
func (w *reloader) definitions() status.Definitions {
	w.mu.Lock()
	defer w.mu.Unlock()
	return status.Definitions{Version: w.present.Version(), Reload: w.last}
}

// reloadMetrics are the metrics about definitions.
type reloadMetrics struct {
	info    *prometheus.GaugeVec
	reloads *prometheus.CounterVec
	last    prometheus.Gauge
	good    prometheus.Gauge
}

func newReloadMetrics(r prometheus.Registerer) *reloadMetrics {
	maker := metric.For(r)
	m := &reloadMetrics{
		info:    maker.Gauges("weir_definitions_info", "1 for the version of the definitions in use.", "version"),
		reloads: maker.Counters("weir_definitions_reloads_total", "Changes of the definitions by outcome: loaded, refused.", "outcome"),
		last:    maker.Gauge("weir_definitions_last_reload_timestamp_seconds", "When the definitions last changed; 0 if they have not."),
		good: maker.Gauge("weir_definitions_last_reload_successful",
			"1 if the definitions in use are those in the files, 0 if those were refused."),
	}
	m.good.Set(1)
	for _, outcome := range []string{"loaded", "refused"} {
		m.reloads.WithLabelValues(outcome)
	}
	return m
}

func (m *reloadMetrics) present(r *features.Registry) {
	m.info.Reset()
	m.info.WithLabelValues(r.Version()).Set(1)
}

func (m *reloadMetrics) reloaded(outcome string, at time.Time) {
	m.reloads.WithLabelValues(outcome).Inc()
	m.last.Set(float64(at.UnixMilli()) / 1000)
	m.good.Set(0)
	if outcome == "loaded" {
		m.good.Set(1)
	}
}
