package query

import (
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// Completeness says since when the state holds all events that a feature needs. A
// feature that is answered from others, its parts, has one for each of them: it is
// whole when the window of each part is, however long those of the others are.
type Completeness struct {
	since int64          // event time in ms, of a feature over a stream; see state.History
	parts []Completeness // of a derived feature; of a multi-hop one, of its list and of its members
}

// everything is the completeness of a feature whose state lacks nothing.
var everything = Completeness{since: state.MinTime}

// CompletenessOf is what a history says of a feature. Without a history, nothing is
// known to be missing.
func CompletenessOf(f *features.Feature, h *state.History) *Completeness {
	if h == nil {
		return &everything
	}
	c := completenessOf(f, h)
	return &c
}

func completenessOf(f *features.Feature, h *state.History) (c Completeness) {
	parts := f.Parts()
	if len(parts) == 0 {
		return Completeness{since: h.CompleteSince(f.Retained())}
	}
	for _, part := range parts {
		c.parts = append(c.parts, completenessOf(part, h))
	}
	return c
}

func (c *Completeness) part(i int) *Completeness {
	if c == &everything {
		return c
	}
	return &c.parts[i]
}

// complete says since when the answer of a feature over a stream is complete, given
// the event time from which on the state holds all events that the feature needs.
// Nothing of the answer is sure while events pass the state by, and where events
// that passed it by may have begun a window elsewhere: the answer is complete
// since a moment behind its end then. An answer that begins before it is
// complete is Incomplete, and not exact.
func (a *Answer) complete(since int64) {
	since = max(since, a.since)
	looksWhole := a.From >= since
	if since == state.MaxTime || looksWhole && a.coveredSince < since {
		since = a.behindEnd()
	}
	a.CompleteSince = since
	if a.From < since {
		a.Status, a.Exact = Incomplete, false
	}
}

// restOn makes the answer no more complete than one that it is made of. If that one
// is incomplete it says since when it would be complete, and so does this one; but a
// moment behind its own end if that would look whole.
func (a *Answer) restOn(part *Answer) {
	if part.Status != Incomplete {
		if a.Status != Incomplete {
			a.CompleteSince = max(a.CompleteSince, min(part.CompleteSince, a.From))
		}
		return
	}
	since := part.CompleteSince
	if since <= a.From {
		since = a.behindEnd()
	}
	if a.Status == Incomplete {
		since = max(since, a.CompleteSince)
	}
	a.Status, a.Exact, a.CompleteSince = Incomplete, false, since
}

// behindEnd is the first moment behind the answer.
func (a *Answer) behindEnd() int64 { return max(a.From, a.To) + 1 }
