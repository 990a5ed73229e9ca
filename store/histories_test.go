package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// A history is shared for a short time, and read again before it is too old. Other questions meanwhile use the shared
// one.
func TestHistoriesAreShared(t *testing.T) {
	const refreshAge = MaxHistoryAge / 2
	now, reads := time.UnixMilli(0), 0
	var read func() (*state.History, error)
	h := NewHistories(refreshAge, func(context.Context) (*state.History, error) {
		reads++
		if read != nil {
			return read()
		}
		return &state.History{}, nil
	}, func() time.Time { return now })
	get := func() *state.History {
		t.Helper()
		history, err := h.Get(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return history
	}
	gone := get()
	gone.Superseded = func() bool { return true } // the state that was read since may be another server's
	first := get()
	if first == gone {
		t.Error("a history was used that is superseded")
	}
	reads = 1
	now = now.Add(refreshAge - 1)
	if get() != first || reads != 1 {
		t.Errorf("%d reads, or another history; want 1", reads)
	}
	now = now.Add(1)
	read = func() (*state.History, error) {
		read = nil
		if get() != first { // another reader, while this one reads
			t.Error("a history that is recent enough was not used")
		}
		now = now.Add(MaxHistoryAge - refreshAge)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.Get(ended, time.Time{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a history that is too old was used: %v", err)
		}
		return &state.History{}, nil
	}
	if get() == first || reads != 2 {
		t.Errorf("%d reads, want 2, or the old history was used", reads)
	}
	now = now.Add(time.Hour)
	read = func() (*state.History, error) { return nil, errors.New("refused") }
	if _, err := h.Get(t.Context(), time.Time{}); err == nil || err.Error() != "refused" {
		t.Errorf("got error %v, want refused", err)
	}
	read = nil
	get()
}

// A history is shared until it is too old, or the state that is read may have gone back behind it.
func TestHistoryIsReadAgain(t *testing.T) {
	now, superseded, reads := time.UnixMilli(0), false, 0
	h := NewHistories(MaxHistoryAge, func(context.Context) (*state.History, error) {
		reads++
		return &state.History{Superseded: func() bool { return superseded }}, nil
	}, func() time.Time { return now })
	expect := func(want int) {
		t.Helper()
		if _, err := h.Get(t.Context(), time.Time{}); err != nil || reads != want {
			t.Errorf("error %v, %d reads; want %d", err, reads, want)
		}
	}
	expect(1)
	now = now.Add(MaxHistoryAge - 1)
	expect(1)
	superseded = true
	expect(2)
	superseded = false
	now = now.Add(MaxHistoryAge)
	expect(3)
}
