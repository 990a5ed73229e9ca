package source

import (
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Decoder decodes the events of a Source.
type Decoder struct {
	*record.Decoder
	timed map[*record.Stream]*record.Stream // the streams by those of WithTime, which are decoded; nil if no field has the record time
}

// NewDecoder makes a decoder of a source's events of some streams. The time of an event's record is at a path in dotted form; empty
// for none.
func NewDecoder(s Source, streams []*record.Stream, recordTime string) Decoder {
	if recordTime == "" {
		return Decoder{Decoder: s.NewDecoder(streams)}
	}
	timed, decoded := map[*record.Stream]*record.Stream{}, []*record.Stream(nil)
	for _, of := range streams {
		with := WithTime(of, recordTime)
		timed[with], decoded = of, append(decoded, with)
	}
	return Decoder{s.NewDecoder(decoded), timed}
}

// WithTime returns a stream with one more field, for the time of an event's record, at a path in dotted form. The stream
// itself is returned for an empty path.
func WithTime(s *record.Stream, path string) *record.Stream {
	if path == "" {
		return s
	}
	with := *s
	with.Fields, with.Others = append(slices.Clone(s.Fields), s.TimeAt(path, "record time")), nil
	for _, other := range s.Others {
		with.Others = append(with.Others, WithTime(other, path))
	}
	return &with
}

// Event decodes an event, which has a topic, as each stream reads it, and sets its record time if a field has it. Errors
// and results are those of record.Decoder.
func (d *Decoder) Event(e *Event) ([]record.Event, error) {
	rec := record.Record{Partition: state.Partition{Topic: e.Topic}, Timestamp: e.RecordTime, Value: e.Value}
	if d.timed != nil {
		rec.Timestamp = record.NoTime
	}
	events, err := d.Decode(&rec)
	if err != nil || len(events) == 0 || d.timed == nil {
		return events, err
	}
	// The record time is known now, so the event may turn out to be too far ahead of it.
	values := events[0].Values
	e.RecordTime = values[len(values)-1].Num
	rec.Timestamp = e.RecordTime
	events, err = d.Decode(&rec)
	for i := range events {
		events[i].Stream = d.timed[events[i].Stream]
	}
	return events, err
}

// NoneOf returns the error that no event of a file, of n, belongs to a stream. first is the first of them, as it is in the file.
func NoneOf(file string, n int64, s *record.Stream, first []byte) error {
	match := ""
	if s.Match != nil {
		match = ", which takes events with match " + s.Match.Text
	}
	return WithHint(fmt.Errorf("%s: none of its %d events belongs to stream %s%s", file, n, s.Name, match), first)
}
