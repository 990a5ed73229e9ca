package backfill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features/record"
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

// fields returns the fields of a table that the coordinates are read from.
func (c *Coordinates) fields() (list []record.Field) {
	if c == nil {
		return nil
	}
	for _, f := range []record.Field{
		{Name: "record topic", Type: value.String, Path: strings.Split(c.Topic, ".")},
		{Name: "record partition", Type: value.Int, Path: strings.Split(c.Partition, ".")},
		{Name: "record offset", Type: value.Int, Path: strings.Split(c.Offset, ".")},
	} {
		if f.Path[0] != "" {
			list = append(list, f)
		}
	}
	return list
}

// of returns the offset of a row's record, given the row as a JSON object. known is false if the row is no object: it
// cannot be used, and its offset does not matter.
func (c *Coordinates) of(row []byte, topic string) (at state.RecordOffset, known bool, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(row, &fields) != nil {
		return at, false, nil
	}
	if c.Topic != "" {
		var is string
		text, err := member(fields, c.Topic)
		if err == nil && json.Unmarshal(text, &is) != nil {
			err = fmt.Errorf("%s: expected the name of a topic, found %s", c.Topic, text)
		}
		if err == nil && is != topic {
			err = fmt.Errorf("%s: the record is of topic %q, and the stream's is %q", c.Topic, is, topic)
		}
		if err != nil {
			return at, true, err
		}
	}
	partition, err := number(fields, c.Partition, 31)
	if err != nil {
		return at, true, err
	}
	offset, err := number(fields, c.Offset, 63)
	return state.RecordOffset{Partition: int32(partition), Offset: offset}, true, err
}

// number returns a member that is a number from 0.
func number(fields map[string]json.RawMessage, path string, bits int) (int64, error) {
	text, err := member(fields, path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(text), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s: expected a whole number from 0 on, found %s", path, text)
	}
	return int64(n), nil
}

// member returns the member of an object at a path.
func member(fields map[string]json.RawMessage, path string) (json.RawMessage, error) {
	for name, rest, more := strings.Cut(path, "."); ; name, rest, more = strings.Cut(rest, ".") {
		text, has := fields[name]
		if !has || string(text) == "null" {
			return nil, fmt.Errorf("%s: the row does not say it, so it is unknown which record it was", path)
		}
		if !more {
			return text, nil
		}
		fields = nil
		if json.Unmarshal(text, &fields) != nil {
			return nil, fmt.Errorf("%s: expected an object at %s, found %s", path, name, text)
		}
	}
}
