package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// When a plan is the first to keep some series, these are filled: live events feed them from the offset at which the
// plan took a partition, and a backfill feeds them all records before that offset. See docs/definition-changes.md, "How
// new features are filled".

// Fill is a set of columns that are filled together: those that one plan was the first to keep, over the same cut or
// without one.
type Fill struct {
	ID      string              `json:"-"`     // a hash of the columns, with a '~' and the cut if there is one
	Columns map[string][]string `json:"units"` // keys of columns, see Retained, by topic; sorted
	Cut     *Cut                `json:"cut,omitempty"`
}

// NewFills returns the fills of the series that only this plan keeps. The first plan of a namespace reads the log from
// its beginning, so it fills only what comes from files.
func NewFills(p *Plan, others []*Plan) (fills []*Fill) {
	known := map[string]bool{}
	for _, other := range others {
		for _, id := range other.Series() {
			known[id] = true
		}
	}
	cuts, byCut := p.seriesCuts(), map[string]*Fill{}
	for key := range p.Retained {
		series := seriesOf(key)
		id := cuts[series]
		if known[series] || len(others) == 0 && id == "" {
			continue
		}
		f := byCut[id]
		if f == nil {
			f = &Fill{Columns: map[string][]string{}}
			if cut, has := p.Cuts[id]; has {
				f.Cut = &cut
			}
			byCut[id] = f
			fills = append(fills, f)
		}
		for _, topic := range p.Topics[key] {
			f.Columns[topic] = append(f.Columns[topic], key)
		}
	}
	for _, f := range fills {
		for _, keys := range f.Columns {
			slices.Sort(keys)
		}
		if f.ID = fillID(f.Columns); f.Cut != nil {
			f.ID += "~" + f.Cut.ID()
		}
	}
	slices.SortFunc(fills, func(a, b *Fill) int { return cmp.Compare(a.ID, b.ID) })
	return fills
}

// Part returns the part of a fill that a plan keeps and continues to fill; nil if there is none. Equal columns make
// equal parts, even of different fills: partitions may come to a part in different ways.
func (f *Fill) Part(p *Plan) *Fill {
	if f.In(p) != KeptPart {
		return nil
	}
	part := &Fill{Columns: map[string][]string{}, Cut: f.Cut}
	for topic, keys := range f.Columns {
		for _, key := range keys {
			if _, kept := p.Retained[key]; kept {
				part.Columns[topic] = append(part.Columns[topic], key)
			}
		}
	}
	if len(part.Columns) == 0 {
		return nil
	}
	part.ID = fillID(part.Columns)
	return part
}

// fillID returns the ID of a fill with columns. A store that went back in time may make another fill of the same plan,
// with other columns: it must not pass for the fill that a process works on.
func fillID(columns map[string][]string) string {
	return hashed(fmt.Sprintf("fill 1\n%v\n", columns), fillIDLength)
}

const fillIDLength = 12

// InOrder sorts fills so that each part comes after the fills that it is part of.
func InOrder(fills map[string]*Fill) []*Fill {
	return slices.SortedFunc(maps.Values(fills), func(a, b *Fill) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), cmp.Compare(a.ID, b.ID))
	})
}

func (f *Fill) size() (columns int) {
	for _, keys := range f.Columns {
		columns += len(keys)
	}
	return columns
}

// Before returns the fills that have all columns of this one and more, smallest first. In partitions that no plan with
// this fill has taken, its columns are filled with these.
func (f *Fill) Before(fills map[string]*Fill) (before []*Fill) {
	for _, other := range fills {
		if f.PartOf(other) {
			before = append(before, other)
		}
	}
	slices.SortFunc(before, func(a, b *Fill) int { return cmp.Or(cmp.Compare(a.size(), b.size()), cmp.Compare(a.ID, b.ID)) })
	return before
}

// PartOf reports whether another fill has all columns of this one and more.
func (f *Fill) PartOf(other *Fill) bool {
	for topic, keys := range f.Columns {
		if slices.ContainsFunc(keys, func(key string) bool { return !other.Has(topic, key) }) {
			return false
		}
	}
	return f.size() < other.size()
}

// Shares reports whether another fill has columns of the same series.
func (f *Fill) Shares(other *Fill) bool {
	return slices.ContainsFunc(f.Series(), func(id string) bool { return slices.Contains(other.Series(), id) })
}

// Series returns the IDs of the series whose columns the fill has.
func (f *Fill) Series() (ids []string) {
	for _, keys := range f.Columns {
		for _, key := range keys {
			ids = append(ids, seriesOf(key))
		}
	}
	return ids
}

// Kept is how much of a fill a plan keeps.
type Kept int

// The values of Kept.
const (
	KeptNone Kept = iota
	KeptPart
	KeptAll
)

// In reports how much of the fill a plan keeps. A plan that keeps other columns of a series than the fill has keeps the
// fill in part.
func (f *Fill) In(p *Plan) Kept {
	series := map[string]bool{}
	for _, id := range p.Series() {
		series[id] = true
	}
	all, none := true, true
	for _, keys := range f.Columns {
		for _, key := range keys {
			_, kept := p.Retained[key]
			all = all && kept
			none = none && !series[seriesOf(key)]
		}
	}
	switch {
	case all:
		return KeptAll
	case none:
		return KeptNone
	default:
		return KeptPart
	}
}

// Keeps returns the fills that a plan keeps completely, by ID.
func (p *Plan) Keeps(fills map[string]*Fill) (kept []*Fill) {
	for _, f := range fills {
		if f.In(p) == KeptAll {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(kept, func(a, b *Fill) int { return cmp.Compare(a.ID, b.ID) })
	return kept
}

// Has reports whether the fill has a column of a topic.
func (f *Fill) Has(topic, key string) bool {
	_, has := slices.BinarySearch(f.Columns[topic], key)
	return has
}

// Partition returns the name of the fill's progress in a partition.
func (f *Fill) Partition(p Partition) Partition {
	p.Fill = f.ID
	return p
}

// Archive returns the name of the fill's progress in the rows of an archive.
func (f *Fill) Archive(a *Archive) Partition { return Partition{Fill: f.ID, Archive: a.ID} }

// Moved is the log tag in the position of a fill in an archive, after another fill that keeps a part of its columns has
// taken over.
const Moved = "moved"

func seriesOf(key string) string { return key[:min(len(key), SeriesIDLength)] }

// Filling is the progress of a fill with a partition in one shard.
type Filling struct {
	// Known is true if the shard knows the fill of the partition. Otherwise no plan with the fill has taken the
	// partition there yet.
	Known bool
	// Broken is true if the fill can never be complete there: events may have reached only some of its series, or some
	// series twice.
	Broken bool
	// Begun is true once the start of the filling is decided. Until then the first of Ranges has no From.
	Begun bool
	// Since is the event time, in ms, from which the fill covers the partition, once it is done.
	Since int64
	// Ranges are the offsets that live events do not feed, ascending. The last one is open, with
	// openRange as its To, while a plan without the fill has the partition.
	Ranges []OffsetRange
	// Opened is when the open range began, in ms by the clock; 0 without one.
	Opened int64
	Ahead  Ahead    // by how much the clock of the shard's server was ahead since it is known; see History
	At     Position // the next record to apply; Epoch is the last applied record's, except after jumps between ranges
}

// openRange is the To of a range whose end is unknown.
const openRange = MaxTime

// Done reports whether nothing is left to fill.
func (f *Filling) Done() bool {
	if !f.Known || f.Broken {
		return false
	}
	for _, r := range f.Ranges {
		if !f.Begun || f.At.Offset < r.To {
			return false
		}
	}
	return true
}

// Left returns the ranges that are still to be filled, without an open one.
func (f *Filling) Left() (left []OffsetRange) {
	if !f.Known || f.Broken {
		return nil
	}
	for _, r := range f.Ranges {
		if r.To == openRange {
			continue
		}
		if !f.Begun {
			left = append(left, r)
			continue
		}
		for _, part := range RangesBetween(f.At, Position{Offset: r.To}) {
			part.From, part.Without = max(part.From, r.From), part.Without|r.Without
			if part.From < part.To && part.Without != AllSlices {
				left = append(left, part)
			}
		}
	}
	return left
}

// Share counts the records that are filled and all that are to be filled, by offsets.
func (f *Filling) Share() (filled, all int64) {
	if !f.Begun {
		return 0, 0
	}
	for _, r := range f.Ranges {
		if r.To == openRange {
			continue
		}
		n := (^r.Without).size()
		all += (r.To - r.From) * n / ShardSlices
		filled += (min(max(f.At.Offset, r.From), r.To) - r.From) * n / ShardSlices
	}
	return filled, all
}

// FillStart is where the fill of a partition starts.
type FillStart struct {
	Fill      *Fill
	Partition Partition
	From      int64  // the first offset
	Since     int64  // the event time, in ms, from which the fill covers the partition
	Log       string // the tag of the log that the offset belongs to
}

// FillEpoch is the progress of a fill in the whole state of a namespace.
type FillEpoch struct {
	Fill  *Fill
	Topic string
	// Whole is true if every shard has filled all partitions of the topic that the namespace knows.
	Whole bool
	// Archived is true, for a fill over a cut, if every shard has all rows of the archives that any shard knows.
	// ArchivedSince is the event time, in ms, from which these archives have all events.
	Archived      bool
	ArchivedSince int64
	// Broken is true if the fill can never be complete; see History.GivenUp.
	Broken bool
	Since  int64 // see Filling; over all shards and partitions
	// Opened is when a plan without the fill last took a partition that it still has, in ms by the clock; 0 for never.
	// See Filling.
	Opened int64
	Ahead  Ahead // by how much clocks of servers were ahead since shards know it; see History
	// Filled and All count offsets and rows over all shards, from which the filled share follows.
	Filled, All int64
	// FilledRows and AllRows count only rows of files.
	FilledRows, AllRows int64
}

// GivenUp reports whether a fill can never be complete, so that what is needed of it is filled in another generation. It was
// given up for a partition, or a plan with all of it has a partition that does not know it: then the plans went back in time,
// and were registered again with other fills than the partition had been claimed with.
func (h *History) GivenUp(f *Fill) bool {
	known := false
	for i := range h.Fills {
		if e := &h.Fills[i]; e.Fill.ID == f.ID {
			if known = true; e.Broken {
				return true
			}
		}
	}
	return !known && slices.ContainsFunc(h.PlanEpochs, func(e PlanEpoch) bool {
		p := h.Plans[e.Version]
		return len(f.Columns[e.Topic]) > 0 && e.Last == MaxTime && p != nil && f.In(p) == KeptAll
	})
}

// AddRows adds the rows of an archive in one shard. `at` is the position there, negative if there is none.
func (f *FillEpoch) AddRows(at, all int64) {
	at = max(0, at)
	f.Filled, f.All = f.Filled+at, f.All+all
	f.FilledRows, f.AllRows = f.FilledRows+at, f.AllRows+all
}

// Done reports whether nothing is left to fill, neither from the log nor from files.
func (f *FillEpoch) Done() bool { return f.Whole && (f.Fill.Cut == nil || f.Archived) }

// share returns the filled share. It is below 1 while anything is left, and 0 until the starts of the partitions are
// known.
func (f *FillEpoch) share() float64 {
	if f.All == 0 {
		return 0
	}
	return min(float64(f.Filled)/float64(f.All), almostFilled)
}

const almostFilled = 0.999 // by offsets; a partition may not have begun
