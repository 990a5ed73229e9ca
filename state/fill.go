package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// When a plan is the first to keep some series, these are filled: live events feed them from the
// offset at which the plan took a partition, and a backfill feeds them everything before exactly
// that offset. See docs/definition-changes.md, "How new features are filled".

// Fill is what is filled together: the columns of series that one plan was the first to keep, over
// the same cut or without one.
type Fill struct {
	ID      string              `json:"-"`     // the version of that plan, with a '~' and the cut if there is one
	Columns map[string][]string `json:"units"` // keys of columns, see Retained, by topic; sorted
	Cut     *Cut                `json:"cut,omitempty"`
}

// NewFills are the fills of the series that only this plan keeps. The first plan of a namespace
// reads the log from its beginning, so it fills only what comes from files.
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
			f = &Fill{ID: p.Version, Columns: map[string][]string{}}
			if cut, has := p.Cuts[id]; has {
				f.ID, f.Cut = p.Version+"~"+id, &cut
			}
			byCut[id] = f
			fills = append(fills, f)
		}
		f.Columns[p.Topics[key]] = append(f.Columns[p.Topics[key]], key)
	}
	for _, f := range fills {
		for _, keys := range f.Columns {
			slices.Sort(keys)
		}
	}
	slices.SortFunc(fills, func(a, b *Fill) int { return cmp.Compare(a.ID, b.ID) })
	return fills
}

// Part is the part of a fill that a plan keeps and continues to fill; nil for none. The same
// columns are the same part, whatever the fill: partitions may come to it in different ways.
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
	part.ID = hashed(fmt.Sprintf("part 1\n%v\n", part.Columns), partLength)
	return part
}

const partLength = 12

// InOrder sorts fills such that parts come after what they are parts of.
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

// Before are those of the fills that have all columns of this one and more, the least of them first.
// In partitions that no plan with this fill has taken, its columns are filled with these.
func (f *Fill) Before(fills map[string]*Fill) (before []*Fill) {
	for _, other := range fills {
		if f.PartOf(other) {
			before = append(before, other)
		}
	}
	slices.SortFunc(before, func(a, b *Fill) int { return cmp.Or(cmp.Compare(a.size(), b.size()), cmp.Compare(a.ID, b.ID)) })
	return before
}

// PartOf says whether another fill has all columns of this one and more.
func (f *Fill) PartOf(other *Fill) bool {
	for topic, keys := range f.Columns {
		if slices.ContainsFunc(keys, func(key string) bool { return !other.Has(topic, key) }) {
			return false
		}
	}
	return f.size() < other.size()
}

// Shares says whether another fill has columns of the same series.
func (f *Fill) Shares(other *Fill) bool {
	return slices.ContainsFunc(f.series(), func(id string) bool { return slices.Contains(other.series(), id) })
}

// series are the IDs of the series whose columns the fill has.
func (f *Fill) series() (ids []string) {
	for _, keys := range f.Columns {
		for _, key := range keys {
			ids = append(ids, seriesOf(key))
		}
	}
	return ids
}

// Kept is how much of a fill a plan keeps.
type Kept int

// Which columns of a fill a plan keeps: all, none, or some.
const (
	KeptNone Kept = iota
	KeptPart
	KeptAll
)

// In says how much of the fill a plan keeps. If it keeps other columns of a series than the fill
// has, it keeps the fill in part, too.
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

// Has says whether the fill has a column of a topic.
func (f *Fill) Has(topic, key string) bool {
	_, has := slices.BinarySearch(f.Columns[topic], key)
	return has
}

// Partition is the name of the fill's progress in a partition. Names of topics contain no ':'.
func (f *Fill) Partition(p Partition) Partition {
	return Partition{Topic: "fill:" + f.ID + ":" + p.Topic, ID: p.ID}
}

// Archive is the name of the fill's progress in the rows of an archive.
func (f *Fill) Archive(a *Archive) Partition { return ArchivePartition(f.ID, a.ID) }

// ArchivePartition is Fill.Archive by the IDs.
func ArchivePartition(fill, archive string) Partition {
	return Partition{Topic: "fill:" + fill + ":archive:" + archive}
}

// Moved is the log tag of the position of a fill in an archive that another fill continues, which
// keeps a part of its columns.
const Moved = "moved"

func seriesOf(key string) string { return key[:min(len(key), SeriesIDLength)] }

// Filling is the progress of a fill with a partition in one shard.
type Filling struct {
	// Known says that the shard knows the fill of the partition. If it does not, no plan with the
	// fill has taken the partition there yet.
	Known bool
	// Broken says that the fill can never be complete there: events may have reached some of its
	// series and not others, or twice.
	Broken bool
	// Begun says that the start of the filling is decided. Until then the first of Ranges has no
	// From.
	Begun bool
	// Since is the event time, in ms, from which on the fill covers the partition when it is done.
	Since int64
	// Ranges are the offsets that live events do not feed, ascending. The last one is open, with
	// openRange as its To, while a plan without the fill has the partition.
	Ranges []OffsetRange
	At     Position // the next record to apply; Epoch is that of the last one applied, except after jumps between ranges
}

// OffsetRange is the offsets from From up to, but excluding, To.
type OffsetRange struct{ From, To int64 }

// openRange is the To of a range whose end is unknown.
const openRange = MaxTime

// Done says whether nothing is left to fill.
func (f *Filling) Done() bool {
	return f.Known && !f.Broken && (len(f.Ranges) == 0 || f.Begun && f.At.Offset >= f.Ranges[len(f.Ranges)-1].To)
}

// Left are the ranges still to be filled, without an open one.
func (f *Filling) Left() (left []OffsetRange) {
	if !f.Known || f.Broken {
		return nil
	}
	for _, r := range f.Ranges {
		if f.Begun {
			r.From = max(r.From, f.At.Offset)
		}
		if r.To != openRange && r.From < r.To {
			left = append(left, r)
		}
	}
	return left
}

// Share counts the records that are filled and all that are to be, by offsets.
func (f *Filling) Share() (filled, all int64) {
	if !f.Begun {
		return 0, 0
	}
	for _, r := range f.Ranges {
		if r.To == openRange {
			continue
		}
		all += r.To - r.From
		filled += min(max(f.At.Offset, r.From), r.To) - r.From
	}
	return filled, all
}

// brokenFilling replaces the ranges of a broken filling.
const brokenFilling = "!"

// ParseFilling parses the filling that a shard stores: since;from-to,… and a position. The last
// range may be from-@ms, open since a moment of the clock.
func ParseFilling(ranges, at string) (f Filling, err error) {
	f = Filling{At: NoPosition, Since: MinTime}
	if ranges == "" {
		return f, nil
	}
	f.Known = true
	if ranges == brokenFilling {
		f.Broken = true
		return f, nil
	}
	since, list, ok := strings.Cut(ranges, ";")
	if !ok {
		return f, fmt.Errorf("%q does not say what is to be filled", ranges)
	}
	if since != "" {
		f.Begun = true
		if f.Since, err = strconv.ParseInt(since, 10, 64); err != nil {
			return f, fmt.Errorf("%q does not say what is to be filled", ranges)
		}
	}
	if f.At, err = ParsePosition(at); err != nil {
		return f, err
	}
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		from, to, ok := strings.Cut(text, "-")
		r := OffsetRange{To: openRange}
		if from != "" {
			r.From, err = strconv.ParseInt(from, 10, 64)
		}
		if err == nil && !strings.HasPrefix(to, "@") {
			r.To, err = strconv.ParseInt(to, 10, 64)
		}
		if err != nil || !ok {
			return f, fmt.Errorf("%q does not say what is to be filled", ranges)
		}
		f.Ranges = append(f.Ranges, r)
	}
	return f, nil
}

// FillStart is where the filling of a partition starts.
type FillStart struct {
	Fill      *Fill
	Partition Partition
	From      int64  // the first offset
	Since     int64  // the event time from which on this covers the partition, in ms
	Log       string // the tag of the log that the offset belongs to
}

// FillEpoch is the progress of a fill in the whole state of a namespace.
type FillEpoch struct {
	Fill  *Fill
	Topic string
	// Whole says that every shard has filled all partitions of the topic that the namespace knows.
	Whole bool
	// Archived says, of a fill over a cut, that every shard has all rows of the archives that any
	// shard knows of; ArchivedSince is the event time since which these have all events, in ms.
	Archived      bool
	ArchivedSince int64
	// Broken says that it can never be complete.
	Broken bool
	Since  int64 // see Filling; over all shards and partitions
	// Filled and All count offsets and rows over all shards, from which the filled share follows.
	Filled, All int64
	// FilledRows and AllRows are those of them that are rows of files.
	FilledRows, AllRows int64
}

// AddRows adds the rows of an archive in one shard, given the position there, negative for none.
func (f *FillEpoch) AddRows(at, all int64) {
	at = max(0, at)
	f.Filled, f.All = f.Filled+at, f.All+all
	f.FilledRows, f.AllRows = f.FilledRows+at, f.AllRows+all
}

// Done says whether nothing is left to fill, neither from the log nor from files.
func (f *FillEpoch) Done() bool { return f.Whole && (f.Fill.Cut == nil || f.Archived) }

// share is the filled share, below 1 while anything is left; 0 if it is not yet known where the
// filling of partitions starts.
func (f *FillEpoch) share() float64 {
	if f.All == 0 {
		return 0
	}
	return min(float64(f.Filled)/float64(f.All), almostFilled)
}

const almostFilled = 0.999 // by offsets; a partition may not have begun
