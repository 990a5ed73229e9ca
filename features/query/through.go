package query

import (
	"cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// A multi-hop feature is asked in two hops: the first answers with a
// list, and the second is about all members of it together. An event counts for
// the member it is of, so the answer is that of one entity that has all of their
// events.

// hop is a multi-hop feature on its way.
type hop struct {
	*features.Through
	at       int64 // milliseconds
	set      int   // where its needs of the first round trip begin
	need, to int   // its needs of the second
	// first is the answer of the first hop, Capped also where its list has more
	// members than are asked about.
	first Answer
}

// goThrough answers a first hop, and adds what the second one needs of the
// members: each different one once, in the order of the list.
func (r *Reading) goThrough(h *hop) {
	r.overStream(&h.first, h.Set, h.set, h.set+len(h.Set.Series), h.at)
	h.need = len(r.needs)
	members := map[string]bool{}
	var text []byte
	for _, item := range h.first.Items {
		text = state.AppendEntity(text[:0], true, item.Value)
		if members[string(text)] {
			continue
		}
		if len(members) == h.Max {
			h.first.Capped = true
			break
		}
		members[string(text)] = true
		r.addReads(h.Each, string(text), h.at)
	}
	h.to = len(r.needs)
}

// second answers a second hop. What it covers is what the second hop does; it is
// exact and whole if both are, and there is none where the list could not be read.
// Of no members nothing can be missing.
func (r *Reading) second(a *Answer, h *hop, c *Completeness) {
	r.need += len(h.Set.Series)
	read := r.overStream(a, h.Each, h.need, h.to, h.at)
	if err := cmp.Or(h.first.Err, r.err(h.set, h.set+len(h.Set.Series))); err != nil {
		unread(a, h.Each, err, h.at, r.now)
		return
	}
	if !read {
		return
	}
	since := c.part(1).since
	if h.need == h.to {
		since = state.MinTime
	}
	a.complete(since)
	expired(&h.first, h.Set, r.held) // which was not known when the list was read
	h.first.complete(c.part(0).since)
	a.restOn(&h.first)
	a.Capped = a.Capped || h.first.Capped
	a.Exact = a.Exact && h.first.Exact && !a.Capped
}
