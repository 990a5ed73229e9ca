package store

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/state"
)

// Histories shares the history of the state among readers for a short time, at most MaxHistoryAge: one that is read after the
// state tells since when that is complete. It is safe for concurrent use.
type Histories struct {
	read    func(context.Context) (*state.History, error)
	now     func() time.Time
	refresh time.Duration
	last    atomic.Pointer[datedHistory]
	reading chan struct{} // holds one token while nobody reads
	whole   state.WholeFills
}

type datedHistory struct {
	*state.History
	at time.Time // before it was read
}

// NewHistories shares what read returns, by a clock. From the age refresh on one reader reads it again, while others use the old one.
func NewHistories(refresh time.Duration, read func(context.Context) (*state.History, error), now func() time.Time) *Histories {
	h := &Histories{read: read, now: now, refresh: refresh, reading: make(chan struct{}, 1)}
	h.reading <- struct{}{}
	return h
}

// Get returns a history that is recent enough for an answer from state that was just read, and that was not read before
// notBefore; nil if the store keeps none.
func (h *Histories) Get(ctx context.Context, notBefore time.Time) (*state.History, error) {
	usable := func(age time.Duration) *datedHistory {
		if last := h.last.Load(); last != nil && h.now().Sub(last.at) < age && !last.at.Before(notBefore) && last.Current() {
			return last
		}
		return nil
	}
	if last := usable(h.refresh); last != nil {
		return last.History, nil
	}
	if last := usable(MaxHistoryAge); last != nil {
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
	if last := usable(h.refresh); last != nil { // another one has read it meanwhile
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

// Now returns the time of the clock.
func (h *Histories) Now() time.Time { return h.now() }

// Last returns the last history that was read, nil before the first.
func (h *Histories) Last() *state.History {
	if last := h.last.Load(); last != nil {
		return last.History
	}
	return nil
}

// At adjusts a history to state that was read at a moment, see state.WholeFills.
func (h *Histories) At(history *state.History, moment time.Time) *state.History {
	return h.whole.At(history, moment)
}
