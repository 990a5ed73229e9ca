package query

import (
	"cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
)

// A multi-hop feature is answered in two hops: the first answers with a list, and the second with one answer for all
// its members together, as for one entity that has the events of all members.

// multiHop is a multi-hop feature while it is answered.
type multiHop struct {
	*features.MultiHop
	list, each int // its frames
	set        int // index of its first need in the first round trip
	need, to   int // its needs in the second
	// first is the answer of the first hop, Capped also if its list has more members than are asked
	// about.
	first Answer
}

// firstHop answers a first hop, and adds the reads of the second one for the members: each distinct member once, in the
// order of the list.
func (r *Reading) firstHop(h *multiHop) {
	r.overStream(&h.first, &r.frames[h.list], h.set, h.set+len(h.Set.Series))
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
		r.addReads(&r.frames[h.each], string(text))
	}
	h.to = len(r.needs)
}

// secondHop answers a second hop. It covers what the second hop covers; it is exact and complete if both are, and has
// no value if the list could not be read. Without members nothing is missing.
func (r *Reading) secondHop(a *Answer, h *multiHop, c *Completeness) {
	r.need += len(h.Set.Series)
	f := &r.frames[h.each]
	read := r.overStream(a, f, h.need, h.to)
	if err := cmp.Or(h.first.Err, r.err(h.set, h.set+len(h.Set.Series))); err != nil {
		unread(a, h.Each, err, f.at, r.now)
		return
	}
	if !read {
		return
	}
	each := c.part(1)
	if h.need == h.to {
		each = &everything
	}
	a.complete(h.Each, each)
	lost(&h.first, h.Set, r.remaining) // unknown when the list was read
	h.first.complete(h.Set, c.part(0))
	a.restOn(&h.first)
	if h.first.Capped {
		a.Capped = true
		if a.Status == NotFound { // members that are not asked may have events
			a.withhold()
		}
		if h.Each.Call.Members != nil {
			aggregate.DoubtMembers(a.Items)
		}
	}
	a.Exact = a.Exact && h.first.Exact && !a.Capped
	a.LaterEvents = a.LaterEvents || h.first.LaterEvents
	a.late()
}
