package state

import "fmt"

// What a log no longer has can be filled from files. A cut says which events are those of the files
// and which those of the log, so that none counts twice or not at all. Series over a cut are
// generations of their own, which live events feed from the cut on only. See
// docs/definition-changes.md, "What comes from files".

// Cut is where the files of a topic end and its log begins.
type Cut struct {
	Topic string `json:"topic"`
	// Until is an event time in ms: events before it count if they are in files, all others if they
	// are in the log.
	Until int64 `json:"until"`
}

// ID names the cut: letters, digits, '-' and '_'.
func (c *Cut) ID() string { return hashed(fmt.Sprintf("cut 1\n%s %d\n", c.Topic, c.Until), cutLength) }

const cutLength = 6

// Logged says whether an event of a time, in ms, counts where it is in the log. Other events count
// where they are in files.
func (c *Cut) Logged(time int64) bool { return time >= c.Until }

// CutOf is the cut of a generation that the plan keeps; nil for none.
func (p *Plan) CutOf(g Generation) *Cut {
	if cut, known := p.Cuts[g.Cut]; known {
		return &cut
	}
	return nil
}

// seriesCuts maps the series over cuts that the plan keeps to the IDs of their cuts.
func (p *Plan) seriesCuts() map[string]string {
	cuts := map[string]string{}
	for series, generations := range p.Generations {
		for _, g := range generations {
			if g.Cut != "" {
				cuts[GenerationID(series, g)] = g.Cut
			}
		}
	}
	return cuts
}

// reached is the present cut of the topic if what is wanted reaches back before it; nil if there is
// no such cut.
func (k *Known) reached(w *wanted) *Cut {
	for key, kept := range w.columns {
		if cut := CutOf(w.topics[key], k.Archives); cut != nil && !k.passed(cut.Until, kept) {
			return cut
		}
	}
	return nil
}

// cut finds a cut by its ID; nil for none.
func (k *Known) cut(id string) *Cut {
	for _, a := range k.Archives {
		if id != "" && a.Cut.ID() == id {
			return &a.Cut
		}
	}
	for _, plan := range k.Plans {
		if cut, known := plan.Cuts[id]; known {
			return &cut
		}
	}
	return nil
}

// stated says whether somebody stated that a generation over a cut is complete since a moment, in ms.
// Whatever an older one claims is then wrong: that its log began with the first event, for example.
func (k *Known) stated(g Generation, moment int64) bool {
	cut := k.cut(g.Cut)
	if cut == nil {
		return false
	}
	since, stated := WholeSince(*cut, k.Archives)
	return stated && moment <= since
}

// CompleteSince is the event time, in ms, since which what is filled is complete, once it is.
func (f *FillEpoch) CompleteSince() int64 {
	if f.Fill.Cut == nil {
		return f.Since
	}
	return f.over(f.Fill.Cut, f.Since)
}

// over is the event time since which a series over the fill's cut is complete, given since when it
// has what the log feeds, both in ms. The fill may be nil.
func (f *FillEpoch) over(cut *Cut, since int64) int64 {
	switch {
	case f == nil || !f.Archived:
		return max(since, cut.Until)
	case since <= cut.Until:
		return f.ArchivedSince
	default:
		return since // the log begins behind the cut
	}
}
