package backfill

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Coordinates are the paths of the fields that locate the record of a row in the log. Topic is empty if no field has
// it: then it is the stream's topic.
type Coordinates struct{ Topic, Partition, Offset string }

// Spans maps partitions to the offsets of a file's rows.
type Spans map[int32]*Span

// Span is the least and the greatest offset of some rows, and how many rows there are.
type Span struct{ First, Last, Rows int64 }

func (p Spans) note(at state.RecordOffset) { p.add(at.Partition, Span{at.Offset, at.Offset, 1}) }

func (p Spans) add(partition int32, more Span) {
	s := p[partition]
	if s == nil {
		p[partition] = &more
		return
	}
	s.First, s.Last, s.Rows = min(s.First, more.First), max(s.Last, more.Last), s.Rows+more.Rows
}

// SpansOf returns the spans of several files together. Files with the same content are the same rows: one that is given
// for several streams, or copies.
func SpansOf(files []*File) Spans {
	all, counted := Spans{}, map[string]bool{}
	for _, f := range files {
		if counted[f.Hash] {
			continue
		}
		counted[f.Hash] = true
		for partition, s := range f.Spans {
			all.add(partition, *s)
		}
	}
	return all
}

// Gaps describes the partitions for which the files have fewer rows than offsets between their first and
// their last, by partition.
func (p Spans) Gaps() (gaps []string) {
	for _, partition := range slices.Sorted(maps.Keys(p)) {
		if s := p[partition]; s.Rows < s.Last-s.First+1 {
			gaps = append(gaps, fmt.Sprintf("partition %d: %d rows for the %d offsets from %d to %d", partition, s.Rows, s.Last-s.First+1, s.First, s.Last))
		}
	}
	return gaps
}

// CutByOffsets returns the cut where files of a topic, read with coordinates, end: after their last record of each
// partition. The log of the given partitions must continue there. If it does not, or if it cannot be the log of these
// files, the error says where.
func CutByOffsets(ctx context.Context, brokers Brokers, topic string, files []*File, partitions []state.Partition) (state.Cut, error) {
	logs, err := brokers.Logs(ctx, partitions)
	if err != nil {
		return state.Cut{}, err
	}
	spans, ends, wrong := SpansOf(files), state.Ends{}, []error(nil)
	for partition, s := range spans {
		ends[partition] = s.Last + 1
		if !slices.ContainsFunc(partitions, func(p state.Partition) bool { return p.ID == partition }) {
			wrong = append(wrong, fmt.Errorf("the files have records of partition %d, and topic %s has the partitions 0 to %d", partition, topic, len(partitions)-1))
		}
		if s.Rows > s.Last-s.First+1 {
			wrong = append(wrong, fmt.Errorf("the files have records of partition %d twice: %d rows for the %d offsets from %d to %d", partition, s.Rows, s.Last-s.First+1, s.First, s.Last))
		}
	}
	if len(ends) == 0 {
		return state.Cut{}, fmt.Errorf("the files of topic %s have no record", topic)
	}
	cut := state.Cut{Topic: topic, Ends: ends.Text()}
	for i := range logs {
		partition, l := partitions[i].ID, &logs[i]
		switch end := ends[partition]; {
		case l.Err != nil:
			return cut, l.Err
		case end > l.End:
			wrong = append(wrong, fmt.Errorf("the files have records of partition %d up to offset %d, and its log ends at %d: they are of another log", partition, end-1, l.End))
		case end < l.Start:
			wrong = append(wrong, fmt.Errorf("the log of partition %d begins at offset %d, and the files end before offset %d: give files with the records between", partition, l.Start, end))
		}
		cut.Log = l.ID.Tag()
	}
	for _, f := range files {
		cut.Until = max(cut.Until, f.Latest+1)
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return cut, errors.Join(wrong...)
}

// fields returns the fields that the coordinates are read from: the partition, the offset and, if there is one, the topic.
func (c *Coordinates) fields() (list []record.Field) {
	if c == nil {
		return nil
	}
	list = []record.Field{
		{Name: "record partition", Type: value.Int, Lenient: true, Path: strings.Split(c.Partition, ".")},
		{Name: "record offset", Type: value.Int, Lenient: true, Path: strings.Split(c.Offset, ".")},
	}
	if c.Topic != "" {
		list = append(list, record.Field{Name: "record topic", Type: value.String, Path: strings.Split(c.Topic, ".")})
	}
	return list
}

// located reads the coordinates of rows.
type located struct {
	decoder *record.Decoder
	topic   string // that the records are of
	fields  []record.Field
}

func newLocated(c *Coordinates, from source.Source, topic string) *located {
	l := &located{topic: topic, fields: c.fields()}
	l.decoder = from.NewDecoder([]*record.Stream{{Topic: topic, Format: record.JSON, Fields: l.fields}})
	return l
}

// record returns the offset of a row's record. known is false if the row is no object: it cannot be used, and its offset does
// not matter.
func (l *located) record(row []byte) (at state.RecordOffset, known bool, err error) {
	events, err := l.decoder.Decode(&record.Record{Partition: state.Partition{Topic: l.topic}, Value: row})
	if poison, is := errors.AsType[*record.Poison](err); is {
		if poison.Path == "" {
			return at, false, nil
		}
		return at, true, fmt.Errorf("%s: %s", poison.Path, poison.Message)
	}
	if err != nil || len(events) == 0 {
		return at, false, err
	}
	values := events[0].Values
	for i, most := range []int64{math.MaxInt32, math.MaxInt64} {
		path := strings.Join(l.fields[i].Path, ".")
		switch n := values[i].Num; {
		case values[i].IsNull():
			return at, true, unlocated(path)
		case n < 0 || n > most:
			return at, true, fmt.Errorf("%s: expected a whole number from 0 to %d, found %d", path, most, n)
		}
	}
	if len(values) > 2 {
		path, topic := strings.Join(l.fields[2].Path, "."), values[2]
		switch {
		case topic.IsNull():
			return at, true, unlocated(path)
		case string(topic.Str) != l.topic:
			return at, true, fmt.Errorf("%s: the record is of topic %q, and the stream's is %q", path, topic.Str, l.topic)
		}
	}
	return state.RecordOffset{Partition: int32(values[0].Num), Offset: values[1].Num}, true, nil
}

func unlocated(path string) error {
	return fmt.Errorf("%s: the row does not say it, so it is unknown which record it was", path)
}
