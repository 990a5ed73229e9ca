package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// health holds the problems that prevent the processor from processing events.
type health struct {
	mu       sync.Mutex
	problems map[string]error // by their subject
}

func newHealth() *health { return &health{problems: make(map[string]error)} }

func (h *health) set(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems[what] = err
}

func (h *health) clear(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.problems, what)
}

// err returns all problems as one error, or nil if there are none. If the processor still works, the error has a method
// Degraded.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	degraded := true
	for what, err := range h.problems {
		d, ok := errors.AsType[interface {
			error
			Degraded() bool
		}](err)
		degraded = degraded && ok && d.Degraded()
		all = append(all, fmt.Errorf("%s: %w", what, err))
	}
	slices.SortFunc(all, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	err := errors.Join(all...)
	if err != nil && degraded {
		return degradedError{err}
	}
	return err
}

// degradedError is a problem of a processor that still works.
type degradedError struct{ error }

func (e degradedError) Unwrap() error { return e.error }
func (degradedError) Degraded() bool  { return true }

// lookInterval is how often partitions that do not go on are looked at: also where commits are rarer.
func (c *Config) lookInterval() time.Duration { return min(c.CommitInterval, time.Second) }

// look looks after the partitions that do not go on.
func (w *worker) look(ctx context.Context) {
	w.retry(ctx)
	w.catchUp(ctx)
	w.noteUnfetched()
	w.measureLag(ctx)
}

// patiently is how many looks pass before a partition that is not fetched is reported: a leader moves within a few
// seconds.
const patiently = 10

// noteUnfetched reports partitions that cannot be fetched as stopped, until they can be: they have no leader, or one that
// does not answer or refuses. The processor works: others are fetched, and it need not be replaced while all brokers are
// away.
func (w *worker) noteUnfetched() {
	failing := make(map[state.Partition]error)
	for _, t := range w.poller.Troubles() {
		// While the store takes no batch, a leader that was found for the first time, or again, is not asked.
		if !errors.Is(t.Err, fetch.ErrNotYetFetched) && time.Since(t.Since) >= patiently*w.cfg.lookInterval() {
			failing[state.Partition{Topic: t.Topic, ID: t.Partition}] = t.Err
		}
	}
	for id, p := range w.partitions {
		switch err := failing[id]; {
		case err != nil && (p.lease.unfetched || p.reason == ""):
			p.lease.unfetched = true
			w.report(p, degradedError{fmt.Errorf("nothing can be fetched: %w", err)})
		case err == nil && p.lease.unfetched:
			p.lease.unfetched = false
			w.report(p, nil)
		}
	}
}
