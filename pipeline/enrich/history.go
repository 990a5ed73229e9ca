package enrich

import (
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
)

// known holds what a history says about the features of enriched events.
type known struct {
	history   *state.History
	remaining state.Remaining
	newest    int64 // of the records applied, in ms; at most the clock, which records may be ahead of
	of        map[*features.Feature]*query.Completeness
}

// look uses a history at a moment of the clock. newest is the time of the newest record that the process has applied, in ms.
func (k *known) look(h *state.History, now time.Time, newest int64) {
	k.remaining = h.Remaining(now.UnixMilli())
	k.newest = min(max(h.Newest, newest), now.UnixMilli())
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
