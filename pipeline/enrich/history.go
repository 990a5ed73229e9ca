package enrich

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// History keeps the history of the state that was read last, for all workers: events
// are told by it how complete their features are without reading it for each batch.
type History struct {
	read func(context.Context) (*state.History, error)
	now  func() time.Time

	mu   sync.Mutex
	last *state.History
	at   time.Time // before last was read

	whole state.WholeFills
}

// NewHistory keeps the history that read reads, by a clock.
func NewHistory(read func(context.Context) (*state.History, error), now func() time.Time) *History {
	return &History{read: read, now: now}
}

// get is a history that is not older than store.MaxHistoryAge.
func (p *History) get(ctx context.Context) (*state.History, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.last != nil && now.Sub(p.at) < store.MaxHistoryAge {
		return p.last, nil
	}
	history, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	if history.Missing != nil { // of some shards it is not known
		return nil, fmt.Errorf("read the history: %w", state.ErrUnavailable)
	}
	p.whole.Note(history, p.now())
	p.last, p.at = history, now
	return history, nil
}

// known is what a history says of the features of enriched events.
type known struct {
	history *state.History
	held    int64 // see query.Reading.Held
	of      map[*features.Feature]*query.Completeness
}

// look takes up a history at a moment of the clock.
func (k *known) look(h *state.History, now time.Time) {
	k.held = h.HeldSince(now.UnixMilli())
	if k.history != h {
		k.history, k.of = h, map[*features.Feature]*query.Completeness{}
	}
}

// completeness is that of a feature.
func (k *known) completeness(f *features.Feature) *query.Completeness {
	c := k.of[f]
	if c == nil {
		c = query.CompletenessOf(f, k.history)
		k.of[f] = c
	}
	return c
}
