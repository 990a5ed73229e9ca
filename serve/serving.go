package serve

import (
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// Where state is filled anew beside what was there, features are read from what is the
// most complete: see features.Registry.Serving.

// served is the index of the present registry, as its features are read by a history.
type served struct {
	*index
	given   *features.Registry
	history *state.History
	read    string // the series that are read, where they are not those of the definitions
}

// index is that of the present registry. Which series it reads is told by the last history
// that was read; an answer is held against one that is read after the state, see readsOther.
func (h *handler) index() *index {
	given, last := h.Registry(), h.served.Load()
	var history *state.History
	if dated := h.history.last.Load(); dated != nil {
		history = dated.History
	}
	if last != nil && last.given == given && last.history == history {
		return last.index
	}
	next := &served{given: given, history: history}
	serving := given.Serving(history)
	if serving != given {
		next.read = seriesRead(serving)
	}
	if last != nil && last.given == given && last.read == next.read {
		next.index = last.index
	} else {
		next.index = newIndex(serving, h.metrics.asked)
	}
	h.served.Store(next)
	return next.index
}

// of is the index that a question goes by.
func (q *question) of(h *handler) *index {
	if q.index == nil {
		q.index = h.index()
	}
	return q.index
}

// readsOther has a question go by another index where the history that was read behind the
// state says that other series are to be read, and says so. The registry is the same, or it
// would be another question.
func (q *question) readsOther(h *handler) (bool, error) {
	x, before := h.index(), q.index
	if x == before || x.registry.Version() != before.registry.Version() {
		return false, nil
	}
	q.index = x
	for i, p := range q.plans {
		q.plans[i] = x.plans[p.Name]
		q.asked[i] = q.askedAbout(i)
	}
	if q.pending == nil {
		return true, nil
	}
	q.pending, q.outcomes = nil, q.outcomes[:0]
	return true, q.pend(x, q.request.pending, q.request.at != nil)
}

// seriesRead names all series that the features of a registry read.
func seriesRead(r *features.Registry) string {
	var b strings.Builder
	for _, f := range r.Features {
		for _, s := range f.Series {
			b.WriteString(s.ID)
		}
	}
	return b.String()
}
