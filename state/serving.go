package state

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// While a generation is filled, questions read another one, or tiles that stand in for its own. These functions choose.

// Serving returns a plan of definitions with the generations that can be read: those in the plans that are now applied.
func (h *History) Serving(p *Plan) *Plan {
	serving := &Plan{
		Version: p.Version, Retained: p.Retained, Topics: p.Topics, Tiling: maps.Clone(p.Tiling),
		Generations: map[string][]Generation{}, Cuts: map[string]Cut{},
	}
	kept, alike := serving.Generations, p.Alike()
	for _, e := range h.PlanEpochs {
		if plan := h.Plans[e.Version]; plan != nil && e.Last == MaxTime {
			if plan.Definitions() == p.Version {
				serving.Version = plan.Version
			}
			for series, generations := range plan.Generations {
				kept[series] = append(kept[series], generations...)
			}
			maps.Copy(serving.Cuts, plan.Cuts)
			for series, t := range plan.Tiling {
				if _, defined := p.Tiling[series]; !defined && alike.byContent[t.Content] != nil {
					serving.Tiling[series], kept[series] = t, append(kept[series], plan.GenerationsOf(series)...)
				}
			}
		}
	}
	// Another plan may keep the first generation, and not list it.
	for series, generations := range kept {
		generations = append(generations, Generation{})
		slices.SortFunc(generations, compareGenerations)
		kept[series] = slices.Compact(generations)
	}
	if len(kept) == 0 && !alike.any() {
		return p
	}
	return serving
}

// Best returns the generation of a series as defined that has most for the retained columns; see Fullest.
func (h *History) Best(series string, p *Plan, retained []Retained) Generation {
	generations := p.GenerationsOf(series)
	options := make([][]Retained, len(generations))
	for i, g := range generations {
		options[i] = p.RetainedIn(series, g, retained)
	}
	return generations[h.Fullest(options)]
}

// Fullest returns the index of the list of columns of which the state has most: that with events since the earliest moment.
// Of several that have all events that can be asked for, it is the one that has most of their values, and the last one among
// equals, whose caps were never lower. Of several that have events since the same later moment, it is the one that was kept
// first, which also has some from before.
func (h *History) Fullest(options [][]Retained) (best int) {
	if h == nil {
		return len(options) - 1
	}
	h = h.byRecords()
	var most coverage
	for i, retained := range options {
		asked, c := h.askedSince(retained), h.has(retained)
		since := cmp.Compare(max(asked, c.since), max(asked, most.since))
		switch {
		case since == 0 && c.since <= asked:
			since = cmp.Or(cmp.Compare(max(asked, c.whole), max(asked, most.whole)), -1)
		case since == 0:
			since = cmp.Or(cmp.Compare(c.begun, most.begun), cmp.Compare(most.plans, c.plans))
		}
		if i == 0 || since < 0 {
			best, most = i, c
		}
	}
	return best
}

// HasMore reports whether the state has more of some columns, which stand in for others, than of these, in the same
// order: events since an earlier moment or, of those since the same one, also from before.
func (h *History) HasMore(standIns, own []Retained) bool {
	if h == nil {
		return false
	}
	h = h.byRecords()
	is, was := h.has(standIns), h.has(own)
	if since := cmp.Compare(max(h.askedSince(standIns), is.since), max(h.askedSince(own), was.since)); since != 0 {
		return since < 0
	}
	return h.keptMore(standIns, own)
}

// keptMore reports whether plans have kept some columns whenever they have kept others, for as long, and at other times, too.
func (h *History) keptMore(columns, others []Retained) (more bool) {
	for i := range others {
		for _, e := range h.PlanEpochs {
			if plan := h.Plans[e.Version]; plan != nil && e.Topic == others[i].Topic {
				kept, had := plan.Retained[columns[i].Key]
				other, hadOther := plan.Retained[others[i].Key]
				if hadOther && !(had && kept.covers(other)) {
					return false
				}
				more = more || had && !hadOther
			}
		}
	}
	return more
}

// byRecords returns the history as of the newest record, to compare generations by. While records of the past are applied, Now is
// far later: a safe bound for what an answer states, but by it nothing is left of state that is kept for less than is needed.
func (h *History) byRecords() *History {
	at := *h
	at.Now = at.Newest
	return &at
}

// Lacks reports whether events that can be asked for are missing in columns.
func (h *History) Lacks(retained []Retained) bool {
	return h != nil && h.CompleteSince(retained) > h.askedSince(retained)
}

// has returns what the state has of columns together.
func (h *History) has(retained []Retained) coverage {
	together := coverage{since: MinTime, whole: MinTime, begun: MinTime, plans: math.MaxInt}
	for i := range retained {
		c := h.coverage(&retained[i])
		together.since, together.whole = max(together.since, c.since), max(together.whole, c.whole)
		together.begun, together.plans = max(together.begun, c.begun), min(together.plans, c.plans)
	}
	return together
}

// askedSince returns the earliest event time that questions can reach back to for all of the columns, in ms. They reach back
// from the newest record, or a later moment.
func (h *History) askedSince(retained []Retained) int64 {
	asked := MaxTime
	for _, r := range retained {
		if r.Keep == 0 || h.Newest == 0 {
			return MinTime
		}
		asked = min(asked, h.Newest-r.Keep)
	}
	return asked
}
