package serve

import (
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// While state is filled beside existing state, features are read from the most complete generation: see
// features.Registry.Serving.

// served is the index of the current registry, with its features read according to a history.
type served struct {
	*index
	given   *features.Registry
	history *state.History
	read    string // the series that are read, if they are not those of the definitions
}

// index returns the index of the current registry. The last history that was read decides which series it reads. An
// answer is checked against a history that is read after the state, see readsOther.
func (h *handler) index() *index {
	given, last, history := h.Registry(), h.served.Load(), h.history.Last()
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

// viewOf returns the client's view of the index that a question uses.
func (r *request) viewOf(h *handler) view {
	if r.view.index == nil {
		r.view.index = h.index()
	}
	return r.view
}

// readsOther switches a question to another index if the history that was read after the state requires other series,
// and reports whether it did. The registry must be the same, or it would be another question.
func (q *asked) readsOther(h *handler) (bool, error) {
	x, before := h.index(), q.view.index
	if x == before || x.registry.Version() != before.registry.Version() {
		return false, nil
	}
	q.view.index = x
	for i, p := range q.features {
		q.features[i] = x.features[p.Name]
		q.about[i] = q.askedAbout(i)
	}
	if q.pending.sent == nil {
		return true, nil
	}
	return true, q.readPending(q.pending.sent)
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
