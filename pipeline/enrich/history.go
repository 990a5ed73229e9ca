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

// History caches the history of the state for all workers, so that completeness needs no read for
// each batch.
type History struct {
	read func(context.Context) (*state.History, error)
	now  func() time.Time

	mu   sync.Mutex
	last *state.History
	at   time.Time // before last was read

	whole state.WholeFills
}

// NewHistory caches the history that read returns, by a clock.
func NewHistory(read func(context.Context) (*state.History, error), now func() time.Time) *History {
	return &History{read: read, now: now}
}

// get returns a history not older than store.MaxHistoryAge.
func (p *History) get(ctx context.Context) (*state.History, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.last != nil && now.Sub(p.at) < store.MaxHistoryAge && p.last.Current() {
		return p.last, nil
	}
	history, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	if history.Missing != nil { // unknown for some shards
		return nil, fmt.Errorf("read the history: %w", state.ErrUnavailable)
	}
	p.whole.Note(history, p.now())
	p.last, p.at = history, now
	return history, nil
}

// known holds what a history says about the features of enriched events.
type known struct {
	history *state.History
	expiry  state.Expiry
	of      map[*features.Feature]*query.Completeness
}

// look uses a history at a moment of the clock.
func (k *known) look(h *state.History, now time.Time) {
	k.expiry = h.Expiry(now.UnixMilli())
	if k.history != h {
		k.history, k.of = h, map[*features.Feature]*query.Completeness{}
	}
}

// completeness returns the completeness of a feature.
func (k *known) completeness(f *features.Feature) *query.Completeness {
	c := k.of[f]
	if c == nil {
		c = query.CompletenessOf(f, k.history)
		k.of[f] = c
	}
	return c
}
