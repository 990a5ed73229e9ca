package enrich

import (
	"context"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// A history is shared until it is too old, or the state that is read may have gone back behind it.
func TestHistoryIsReadAgain(t *testing.T) {
	now, superseded, reads := time.UnixMilli(0), false, 0
	h := NewHistory(func(context.Context) (*state.History, error) {
		reads++
		return &state.History{Superseded: func() bool { return superseded }}, nil
	}, func() time.Time { return now })
	expect := func(want int) {
		t.Helper()
		if _, err := h.get(t.Context()); err != nil || reads != want {
			t.Errorf("error %v, %d reads; want %d", err, reads, want)
		}
	}
	expect(1)
	now = now.Add(store.MaxHistoryAge - 1)
	expect(1)
	superseded = true
	expect(2)
	superseded = false
	now = now.Add(store.MaxHistoryAge)
	expect(3)
}
