package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What a log no longer has can be filled from files. A cut says which events are those of the files
// and which those of the log, so that none counts twice or not at all. Series over a cut are
// generations of their own, which live events feed from the cut on only. See
// docs/definition-changes.md, "What comes from files".

// Cut is where the files of a topic end and its log begins: at an event time, or at an offset of each
// partition.
type Cut struct {
	Topic string `json:"topic"`
	// Until is an event time in ms: events before it count if they are in files, all others if they
	// are in the log. In a cut by offsets it decides nothing: all events since it are in the log.
	Until int64 `json:"until"`
	// Ends makes it a cut by offsets, see Ends.Text: records before the end of their partition count
	// if they are in files, all others if they are in the log.
	Ends string `json:"ends,omitempty"`
	// Log is the tag of the log whose offsets they are. Every record of another log counts.
	Log string `json:"log,omitempty"`
}

// Ends are, by partition, the offset before which records count from files. Partitions without one
// count from the log alone.
type Ends map[int32]int64

// Text writes the ends by partition, so that equal ends are equal texts.
func (e Ends) Text() string {
	var b strings.Builder
	for _, partition := range slices.Sorted(maps.Keys(e)) {
		fmt.Fprintf(&b, " %d:%d", partition, e[partition])
	}
	return strings.TrimPrefix(b.String(), " ")
}

// ParseEnds parses what Text writes.
func ParseEnds(text string) (Ends, error) {
	ends := Ends{}
	for word := range strings.FieldsSeq(text) {
		id, offset, _ := strings.Cut(word, ":")
		partition, err := strconv.ParseInt(id, 10, 32)
		end, err2 := strconv.ParseInt(offset, 10, 64)
		if cmp.Or(err, err2) != nil {
			return nil, fmt.Errorf("%q is not the offset at which a partition is cut", word)
		}
		ends[int32(partition)] = end
	}
	return ends, nil
}

// ID names the cut: letters, digits, '-' and '_'.
func (c *Cut) ID() string {
	return hashed(fmt.Sprintf("cut 1\n%s %d\n%s\n%s\n", c.Topic, c.Until, c.Ends, c.Log), cutLength)
}

const cutLength = 6

// Place is where a record is.
type Place struct {
	Partition int32
	Offset    int64
	Log       string // its tag; empty if unknown
}

// Boundary is a cut in the form that decides about events.
type Boundary struct {
	until int64
	ends  Ends // nil for a cut by time
	log   string
}

// Boundary prepares the cut; nil for none. Ends that do not parse are none.
func (c *Cut) Boundary() *Boundary {
	if c == nil {
		return nil
	}
	b := &Boundary{until: c.Until, log: c.Log}
	if c.Ends != "" {
		b.ends, _ = ParseEnds(c.Ends)
	}
	return b
}

// Logged says whether an event of a time, in ms, counts where it is in the log, at a place. Other
// events count where they are in files. Every event counts if there is no cut.
func (b *Boundary) Logged(time int64, at *Place) bool { return b == nil || b.logged(time, at) }

func (b *Boundary) logged(time int64, at *Place) bool {
	switch {
	case b.ends == nil:
		return time >= b.until
	case at.Log != "" && b.log != "" && at.Log != b.log:
		return true
	default:
		return at.Offset >= b.ends[at.Partition]
	}
}

// FromFile says whether an event of a time, in ms, that is in a file counts there. Files of a cut by
// offsets have nothing after it.
func (c *Cut) FromFile(time int64) bool { return c.Ends != "" || time < c.Until }

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
		return since // the log begins after the cut
	}
}
