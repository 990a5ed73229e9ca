package state

import "testing"

// Of tiles that have all events since the same moment, those of another width have more if plans have kept them
// whenever they kept the feature's own, for as long, and at other times, too.
func TestOtherTilesHaveMore(t *testing.T) {
	const others, own = "other.x", "owned.x"
	kept := func(other, owned int64) *Plan { // for a time in ms; 0: not at all
		p := &Plan{Retained: map[string]Retention{}}
		for key, keep := range map[string]int64{others: other, own: owned} {
			if keep > 0 {
				p.Retained[key] = Retention{Keep: keep}
			}
		}
		return p
	}
	for name, c := range map[string]struct {
		oldest *Plan
		before *Plan // until a plan has kept neither
		now    *Plan
		want   bool
	}{
		"they are older, and were kept for less":              {kept(0, 0), kept(300, 0), kept(1000, 1000), true},
		"both are as old":                                     {kept(0, 0), kept(1000, 1000), kept(1000, 1000), false},
		"they were kept for less than its own":                {kept(0, 0), kept(300, 1000), kept(1000, 1000), false},
		"its own are older":                                   {kept(0, 0), kept(0, 1000), kept(1000, 1000), false},
		"they are older, and are kept for less":               {kept(0, 0), kept(1000, 0), kept(300, 1000), false},
		"they are older, and were kept for less than its own": {kept(1000, 0), kept(300, 1000), kept(1000, 1000), false},
		"nothing was kept before":                             {kept(0, 0), kept(0, 0), kept(1000, 1000), false},
	} {
		h := &History{
			Newest: 5000, Now: 5000, Plans: map[string]*Plan{"oldest": c.oldest, "before": c.before, "neither": kept(0, 0), "now": c.now},
			PlanEpochs: []PlanEpoch{{"t", "oldest", 3000}, {"t", "before", 4000}, {"t", "neither", 4999}, {"t", "now", MaxTime}},
		}
		column := func(key string) []Retained {
			return []Retained{{Key: key, Topic: "t", Retention: Retention{Keep: 1000}}}
		}
		if got := h.HasMore(column(others), column(own)); got != c.want {
			t.Errorf("%s: they have more: %v", name, got)
		}
	}
}
