package serve

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// A history that is read after the state tells since when the state is complete. Questions share a history for a short
// time, at most store.MaxHistoryAge.

// refreshAge is the age at which a question reads the history again; others meanwhile use the old one.
const refreshAge = 200 * time.Millisecond

// histories holds the last history that was read.
type histories struct {
	read    func(context.Context) (*state.History, error)
	now     func() time.Time
	last    atomic.Pointer[datedHistory]
	reading chan struct{} // holds one token while no question reads
	whole   state.WholeFills
}

type datedHistory struct {
	*state.History
	at time.Time // before it was read
}

func newHistories(read func(context.Context) (*state.History, error), now func() time.Time) *histories {
	h := &histories{read: read, now: now, reading: make(chan struct{}, 1)}
	h.reading <- struct{}{}
	return h
}

// get returns a history that is recent enough for an answer from state that was just read, and that was not read before
// notBefore; nil if the store keeps none.
func (h *histories) get(ctx context.Context, notBefore time.Time) (*state.History, error) {
	usable := func(age time.Duration) *datedHistory {
		if last := h.last.Load(); last != nil && h.now().Sub(last.at) < age && !last.at.Before(notBefore) && last.Current() {
			return last
		}
		return nil
	}
	if last := usable(refreshAge); last != nil {
		return last.History, nil
	}
	if last := usable(store.MaxHistoryAge); last != nil {
		select {
		case <-h.reading:
		default:
			return last.History, nil
		}
	} else {
		select {
		case <-h.reading:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	defer func() { h.reading <- struct{}{} }()
	if last := usable(refreshAge); last != nil { // another question has read it meanwhile
		return last.History, nil
	}
	at := h.now()
	history, err := h.read(ctx)
	if err != nil {
		return nil, err
	}
	h.whole.Note(history, h.now())
	h.last.Store(&datedHistory{history, at})
	return history, nil
}

// completeness is the completeness of a feature according to a history.
type completeness struct {
	history *state.History
	of      *query.Completeness
}

// completeness returns the feature's completeness; nil means no history.
func (p *preparedFeature) completeness(history *state.History) *query.Completeness {
	c := p.complete.Load()
	if c == nil || c.history != history {
		c = &completeness{history, query.CompletenessOf(p.Feature, history)}
		p.complete.Store(c)
	}
	return c.of
}

// complete finds the completeness of the answers; nil means no history.
func (f *found) complete(q *asked, history *state.History) {
	f.reading.SetExpiry(history.Expiry(q.now))
	f.since = f.since[:0]
	for _, p := range q.features {
		f.since = append(f.since, p.completeness(history))
	}
}
