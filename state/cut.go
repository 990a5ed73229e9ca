package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Events that the log no longer has can be filled from files. A cut says which events count from the files and which
// from the log, so that each counts exactly once. Series over a cut are generations of their own; live events feed them
// only from the cut on. See docs/definition-changes.md, "What comes from files".

// Cut is where the files of a topic end and its log begins: at an event time, or at an offset of each
// partition.
type Cut struct {
	Topic string `json:"topic"`
	// Until is an event time in ms: events before it count from files, all others from the log. In a cut by offsets it
	// decides nothing, and all events since it are in the log.
	Until int64 `json:"until"`
	// Ends makes it a cut by offsets (see Ends.Text): records before the end of their partition count from files, all
	// others from the log.
	Ends string `json:"ends,omitempty"`
	// Log is the tag of the log that the offsets belong to. Every record of another log counts.
	Log string `json:"log,omitempty"`
}

// Ends maps partitions to the offset before which records count from files. Partitions without one count from the log
// alone.
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

// RecordOffset is the partition and the offset of a record.
type RecordOffset struct {
	Partition int32
	Offset    int64
	Log       string // its tag; empty if unknown
}

// Boundary is a cut, prepared to decide about events.
type Boundary struct {
	until int64
	ends  Ends // nil for a cut by time
	log   string
}

// Boundary prepares the cut. It is nil for a nil cut and for Ends that do not parse.
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

// Logged reports whether an event that the log has at an offset counts from the log, given its time in ms. Other events
// count from files. Without a cut every event counts.
func (b *Boundary) Logged(time int64, at *RecordOffset) bool { return b == nil || b.logged(time, at) }

func (b *Boundary) logged(time int64, at *RecordOffset) bool {
	switch {
	case b.ends == nil:
		return time >= b.until
	case otherLogs(at.Log, b.log):
		return true
	default:
		return at.Offset >= b.ends[at.Partition]
	}
}

// OfOtherLog reports whether the offsets of the cut belong to another log than the one with a tag, of which every record
// counts.
func (c *Cut) OfOtherLog(tag string) bool { return c.Ends != "" && otherLogs(c.Log, tag) }

// otherLogs reports whether two tags name two logs. An empty one is unknown.
func otherLogs(tag, other string) bool { return tag != "" && other != "" && tag != other }

// FromFile reports whether an event in a file counts from there, given its time in ms. In a cut by offsets every event
// in a file counts.
func (c *Cut) FromFile(time int64) bool { return c.Ends != "" || time < c.Until }

// CutOf returns the cut of a generation that the plan keeps; nil if there is none.
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

// reached returns the current cut of the topic if the wanted columns reach back before it; nil if there is no such cut, and
// for columns of several topics.
func (k *Known) reached(w *wanted) *Cut {
	if w.ofSeveralTopics() {
		return nil
	}
	for key, kept := range w.columns {
		for _, topic := range w.topics[key] {
			if cut := CutOf(topic, k.Archives); cut != nil && !k.passed(cut.Until, kept) {
				return cut
			}
		}
	}
	return nil
}

// cut finds a cut by its ID; nil if there is none.
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

// stated reports whether an operator stated that a generation over a cut is complete since a moment, in ms. An older
// generation that claims more, such as that its log began with the first event, is then wrong.
func (k *Known) stated(g Generation, moment int64) bool {
	cut := k.cut(g.Cut)
	if cut == nil {
		return false
	}
	since, stated := WholeSince(*cut, k.Archives)
	return stated && moment <= since
}

// CompleteSince returns the event time, in ms, from which the filled columns are complete, once the fill is done.
func (f *FillEpoch) CompleteSince() int64 {
	if f.Fill.Cut == nil {
		return f.Since
	}
	return f.over(f.Fill.Cut, f.Since)
}

// over returns the event time, in ms, from which a series over the fill's cut is complete, given since when its part
// from the log is. The fill may be nil.
func (f *FillEpoch) over(cut *Cut, since int64) int64 {
	switch {
	case f == nil || !f.Archived:
		return max(since, cut.Until)
	case cut.Ends != "" && since > MinTime:
		return since // times do not tell whether that is before the offsets, and a fill from these on has everything
	case since <= cut.Until:
		return f.ArchivedSince
	default:
		return since // the log begins after the cut
	}
}
