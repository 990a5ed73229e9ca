package query

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Completeness states since when the state holds all events that a feature needs. A feature that is answered from
// others, its parts, has one for each of them: it is complete when the window of each part is, independently of the
// other windows.
type Completeness struct {
	since  int64          // event time in ms, for a feature over a stream; see state.History
	now    int64          // see state.History; 0 if unknown
	filled float64        // the share of what it lacks that a backfill has applied; 1 if none is running
	uneven bool           // it is a quotient, and the state of its two terms is complete since different times
	parts  []Completeness // of a derived feature; of a multi-hop one, of its list and of its members
}

// everything is the completeness of a feature whose state lacks nothing.
var everything = Completeness{since: state.MinTime, filled: 1}

// CompletenessOf returns a feature's completeness according to a history. Without a history, nothing is known to be
// missing.
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
		c = Completeness{since: h.CompleteSince(f.Retained()), now: h.Now, filled: 1, uneven: uneven(f, h)}
		if c.since > state.MinTime {
			c.filled = h.Filled(f.Filling())
		}
		return c
	}
	for _, part := range parts {
		c.parts = append(c.parts, completenessOf(part, h))
	}
	return c
}

// uneven reports whether a feature is a quotient of which the state of one term is complete for longer than that of the
// other: a ratio in a log that is older than the column of its condition.
func uneven(f *features.Feature, h *state.History) bool {
	if !f.IsQuotient() {
		return false
	}
	retained := f.Retained()
	first := h.CompleteSince(retained[:1])
	return slices.ContainsFunc(retained[1:], func(r state.Retained) bool { return h.CompleteSince([]state.Retained{r}) != first })
}

// latest returns the greatest moment that an answer may give as the one since which it is complete, in ms: none to come.
func (c *Completeness) latest() int64 {
	if c.now == 0 {
		return state.MaxTime - 1
	}
	return c.now
}

// Since returns the event time, in ms, since which the state holds all events that the feature needs: state.MinTime if
// it lacks none, state.MaxTime while events are applied without it.
func (c *Completeness) Since() int64 {
	if len(c.parts) == 0 {
		return c.since
	}
	since := int64(state.MinTime)
	for i := range c.parts {
		since = max(since, c.parts[i].Since())
	}
	return since
}

// Filled returns the share of what is missing that a backfill has applied; 1 if none is under way.
func (c *Completeness) Filled() float64 {
	if len(c.parts) == 0 {
		return c.filled
	}
	filled := 1.0
	for i := range c.parts {
		filled = min(filled, c.parts[i].Filled())
	}
	return filled
}

func (c *Completeness) part(i int) *Completeness {
	if c == &everything {
		return c
	}
	return &c.parts[i]
}

// complete sets since when the answer of a feature over a stream is complete, given the event time since which the
// state holds all events that the feature needs. While events are applied without the state, or if missing events may
// have moved the beginning of a window, nothing of the answer is certain: it is then complete since its end only. An
// answer that begins before it is complete is Incomplete, and not exact. An Incomplete quotient has a value only if both of
// its terms count the same events.
func (a *Answer) complete(f *features.Feature, c *Completeness) {
	held := max(c.since, a.since)
	since := held
	looksWhole := a.From >= since
	if looksWhole && a.coveredSince < since || since > c.latest() {
		since = a.end()
	}
	a.CompleteSince = since
	if a.From < since {
		a.Status, a.Exact = Incomplete, false
		a.Filling, a.Filled = c.filled < 1, c.filled
		if c.uneven && a.From < c.since || a.uneven && a.From < a.since {
			a.Value, a.Items = value.Value{}, nil
		}
		if held != state.MaxTime && !a.slides {
			a.CompleteAt, _ = f.Window.Past(f.Series[0], held)
		}
	}
}

// restOn makes the answer no more complete than another that it depends on. An incomplete part states since when it
// would be complete, and this answer states the same, but its own end if that would look complete. It is complete when all
// parts are.
func (a *Answer) restOn(part *Answer) {
	if part.Status != Incomplete {
		if a.Status != Incomplete {
			a.CompleteSince = max(a.CompleteSince, min(part.CompleteSince, a.From))
		}
		return
	}
	since := part.CompleteSince
	if since <= a.From {
		since = a.end()
	}
	at := part.CompleteAt
	if a.Status == Incomplete {
		since = max(since, a.CompleteSince)
		if at = max(at, a.CompleteAt); part.CompleteAt == 0 || a.CompleteAt == 0 {
			at = 0
		}
	}
	if part.Filling && (!a.Filling || part.Filled < a.Filled) {
		a.Filling, a.Filled = true, part.Filled
	}
	a.Status, a.Exact, a.CompleteSince, a.CompleteAt = Incomplete, false, since, at
}

// end returns the answer's end, or the first moment after its beginning if that is later.
func (a *Answer) end() int64 { return max(a.From+1, a.To) }
