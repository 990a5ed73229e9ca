package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
)

// State says what a namespace has passed. A store.Store is one.
type State interface {
	History(ctx context.Context) (*state.History, error)
	Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error)
}

// passage says how series have passed the records of dead letters: as live events, which is how they became dead letters,
// or in a fill, which may have read them under definitions that can use them.
type passage struct {
	feeds
	skipped map[RecordID][]string // series whose fill could not use the record
}

// feeds says how series get the records of partitions.
type feeds struct {
	series map[string][]string                     // that plans keep or kept, by topic, sorted
	filled map[state.Partition]map[string]*filling // by series, those that are filled
}

// filling is what the fills of a series have of a partition.
type filling struct {
	begun  bool                // some plan with the series has taken the partition
	ranges []state.OffsetRange // which the fills read, or have from files, in some shard
}

// newPassage reads how a namespace has passed the records of letters, and those of which they are copies.
func newPassage(ctx context.Context, of State, letters []*Letter, skipped []*backfill.Skipped) (*passage, error) {
	partitions, places := map[string][]state.Partition{}, map[RecordID]bool{}
	for _, l := range letters {
		source := l.Source.partition()
		if !slices.Contains(partitions[source.Topic], source) {
			partitions[source.Topic] = append(partitions[source.Topic], source)
		}
		for _, at := range l.places() {
			places[at] = true
		}
	}
	p := &passage{skipped: map[RecordID][]string{}}
	if len(letters) == 0 {
		return p, nil
	}
	// Definitions may change meanwhile, and ranges move from one fill to another, so that neither seems to have them.
	for before := (feeds{}); p.series == nil || !reflect.DeepEqual(before, p.feeds); {
		before = p.feeds
		var err error
		if p.feeds, err = readFeeds(ctx, of, partitions); err != nil {
			return nil, err
		}
	}
	for _, s := range skipped {
		for _, offset := range s.Offsets {
			if at := (RecordID{s.Topic, s.Partition, offset}); places[at] {
				p.skipped[at] = append(p.skipped[at], s.Series...)
			}
		}
	}
	return p, nil
}

// readFeeds reads how a namespace feeds partitions, given by topic.
func readFeeds(ctx context.Context, of State, partitions map[string][]state.Partition) (feeds, error) {
	read := feeds{map[string][]string{}, map[state.Partition]map[string]*filling{}}
	history, err := of.History(ctx)
	if err != nil {
		return read, err
	}
	if history.Missing != nil {
		return read, errors.New("not every server of the store answers, so it is unknown which features lack the events: try again when all do")
	}
	for topic, list := range partitions {
		if read.series[topic], err = seriesOf(history, topic); err != nil {
			return read, err
		}
		for _, partition := range list {
			read.filled[partition] = map[string]*filling{}
		}
		for i := range history.Fills {
			if f := &history.Fills[i]; f.Topic == topic {
				if err := read.addFill(ctx, of, f.Fill, list); err != nil {
					return read, err
				}
			}
		}
	}
	return read, nil
}

// seriesOf returns the series that plans keep, or kept, of the events of a topic, sorted. It may have some of other topics,
// because only fills say of which they are.
func seriesOf(h *state.History, topic string) ([]string, error) {
	if !slices.ContainsFunc(h.PlanEpochs, func(e state.PlanEpoch) bool { return e.Topic == topic }) {
		return nil, fmt.Errorf("the namespace has applied nothing of topic %s: its state is in another namespace, or in another store", topic)
	}
	here, elsewhere := map[string]bool{}, map[string]bool{}
	for i := range h.Fills {
		for of, keys := range h.Fills[i].Fill.Columns {
			for _, series := range seriesIn(keys) {
				here[series], elsewhere[series] = here[series] || of == topic, elsewhere[series] || of != topic
			}
		}
	}
	var list []string
	for _, e := range h.PlanEpochs {
		plan := h.Plans[e.Version]
		switch {
		case e.Topic != topic || e.Version == "" || e.Version == state.Gap:
		case plan != nil:
			list = append(list, plan.Series()...)
		case e.Last == state.MaxTime:
			return nil, fmt.Errorf("the plan %s of topic %s cannot be read, so it is unknown which features lack the events: try again", e.Version, topic)
		}
	}
	list = slices.DeleteFunc(list, func(series string) bool { return elsewhere[series] && !here[series] })
	slices.Sort(list)
	return slices.Compact(list), nil
}

// seriesIn returns the series of columns, given their keys in order.
func seriesIn(keys []string) (ids []string) {
	for _, key := range keys {
		ids = append(ids, key[:state.SeriesIDLength])
	}
	return slices.Compact(ids)
}

// addFill adds what a fill has of partitions of a topic.
func (read *feeds) addFill(ctx context.Context, of State, f *state.Fill, partitions []state.Partition) error {
	var ends state.Ends
	if f.Cut != nil {
		var err error
		if ends, err = state.ParseEnds(f.Cut.Ends); err != nil {
			return err
		}
	}
	all, err := of.Fillings(ctx, f, partitions)
	if err != nil {
		return err
	}
	for i, partition := range partitions {
		ranges, begun := []state.OffsetRange{{To: ends[partition.ID]}}, false
		for shard := range all[i] {
			if s := &all[i][shard]; s.Known && !s.Broken {
				begun = true
				for _, r := range s.Ranges {
					ranges = append(ranges, state.OffsetRange{From: r.From, To: r.To})
				}
			}
		}
		for _, series := range seriesIn(f.Columns[partition.Topic]) {
			filled := read.filled[partition][series]
			if filled == nil {
				filled = &filling{}
				read.filled[partition][series] = filled
			}
			filled.begun = filled.begun || begun
			for _, r := range ranges {
				if r.From < r.To && !slices.Contains(filled.ranges, r) {
					filled.ranges = append(filled.ranges, r)
				}
			}
			slices.SortFunc(filled.ranges, func(a, b state.OffsetRange) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
		}
	}
	return nil
}

// places are where the event of a letter is in its partition: first the original, then its copies. The last one is the
// letter's source.
func (l *Letter) places() (places []RecordID) {
	for _, c := range l.Copies {
		places = append(places, RecordID{l.Source.Topic, l.Source.Partition, c.Offset})
	}
	return append(places, l.Source)
}

// timestamps are those of the records at its places, in ms.
func (l *Letter) timestamps() []int64 {
	if len(l.Copies) == 0 {
		return []int64{l.Timestamp}
	}
	return append(slices.Clone(l.Copies[len(l.Copies)-1].Timestamps), l.Timestamp)
}

// lacking returns the series that have passed the event of a letter without counting it, neither the original nor a copy.
// The next copy is for those only. All others have counted it, or will read it themselves, and then count it or note that
// they cannot.
func (p *passage) lacking(l *Letter) (lacking []string) {
	places, timestamps := l.places(), l.timestamps()
	for _, series := range p.series[l.Source.Topic] {
		missed := true
		for i, at := range places {
			// A copy with a timestamp of its own may have counted where it was not meant to: if only it could be used.
			meant := i == 0 || l.Copies[i-1].Has(series) || !slices.Contains(timestamps[:i], timestamps[i])
			missed = missed && (!meant || p.missed(at, series))
		}
		if missed {
			lacking = append(lacking, series)
		}
	}
	return lacking
}

// missed reports whether a series has passed a record, which some letter is about, without counting it. A fill that has
// not begun, or was given up, will be done from its start.
func (p *passage) missed(at RecordID, series string) bool {
	if slices.Contains(p.skipped[at], series) {
		return true
	}
	filled := p.filled[at.partition()][series]
	if filled == nil {
		return true
	}
	read := func(r state.OffsetRange) bool { return r.From <= at.Offset && at.Offset < r.To }
	return filled.begun && !slices.ContainsFunc(filled.ranges, read)
}
