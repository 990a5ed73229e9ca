package materialize

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/extsort"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Input is a file of events: of one stream, or of the topics that its envelopes name. Or it is a
// Log.
type Input struct {
	Name   string
	Stream *record.Stream // nil for all
	// Open reads the file as events of a stream. The stream has an extra field if record times are
	// read from one.
	Open func(*record.Stream) (source.Source, error)
	// Read returns how many bytes or records have been read, and of how many. It is nil if there is
	// no progress to report.
	Read func() (read, size int64)
	Log  Log // nil for a file

	source source.Source
}

// at adds the location of an event to an error about it.
func (in *Input) at(line int, err error) error {
	if in.Log != nil {
		return fmt.Errorf("%s at offset %d: %w", in.Name, line, err)
	}
	return in.source.At(line, err)
}

// The order within one millisecond. The row of an event counts all events of other streams, and of its own stream up to
// and including itself. A row of a spine counts all events.
const (
	orderOthers = iota
	orderRows
	orderSpine
)

// timeline holds all events and rows in the order of the replay.
type timeline struct {
	*Replay
	sorter  *extsort.Sorter
	item    []byte
	used    int              // events of an input that some stream takes
	streams []*record.Stream // the registry's, and then the spine's
	inOrder bool             // features depend on several entities, so all is replayed in order
}

// recordTimeField is the name of the field that record times are read from.
const recordTimeField = "record time"

// moment is an event or a row of the timeline.
type moment struct {
	key        extsort.Key
	input      int   // -1 for a row of the spine
	line       int   // or the offset in a log
	recordTime int64 // -1 for none
	// events are the event as each stream reads it, or the one that a row was decoded to.
	events []record.Event
	cells  item // of a row of the spine: the cells that are passed on
}

// row returns the event of the row that a moment makes: of the spine, or of a stream; nil if it is none.
func (m *moment) row(stream *record.Stream) *record.Event {
	for i := range m.events {
		if e := &m.events[i]; m.input < 0 || e.Stream == stream {
			return e
		}
	}
	return nil
}

// at adds the location of a moment to an error about it.
func (t *timeline) at(b *block, n int, err error) error {
	m, damaged := b.moment(t.newReader(), n)
	switch {
	case damaged != nil:
		return damaged
	case m.input < 0:
		return t.Spine.table.At(m.line, err)
	default:
		return t.Inputs[m.input].at(m.line, err)
	}
}

func (t *timeline) add(m *moment, cells []source.Cell) error {
	t.item = binary.AppendVarint(t.item[:0], int64(m.input))
	t.item = binary.AppendVarint(t.item, int64(m.line))
	t.item = binary.AppendVarint(t.item, m.recordTime)
	t.item = binary.AppendVarint(t.item, int64(len(m.events)))
	for i := range m.events {
		e, stream := &m.events[i], len(t.Registry.Streams)
		if m.input >= 0 {
			stream = slices.IndexFunc(t.Registry.Streams, func(s *record.Stream) bool { return s.Name == e.Stream.Name })
		}
		t.item = binary.AppendVarint(t.item, int64(stream))
		t.item = appendEvent(t.item, e, len(t.streams[stream].Fields))
	}
	return t.sorter.Add(m.key, appendCells(t.item, cells))
}

// reader reads moments of a timeline for one goroutine.
type reader struct {
	streams []record.Event // the event of each stream that was read last
	events  []record.Event // those of a moment
}

func (t *timeline) newReader() *reader {
	r := &reader{}
	for _, s := range t.streams {
		r.streams = append(r.streams, record.Event{Stream: s, Values: make([]value.Value, len(s.Fields))})
	}
	return r
}

// read returns the inverse of timeline.add. The moment's events are valid until the next read, and alias data.
func (r *reader) read(key extsort.Key, data []byte) (moment, error) {
	i := item{rest: data}
	m := moment{key: key, input: int(i.int()), line: int(i.int()), recordTime: i.int()}
	r.events = r.events[:0]
	for n := i.int(); n > 0 && i.err == nil; n-- {
		stream := i.int()
		if stream < 0 || stream >= int64(len(r.streams)) {
			return m, errCut
		}
		e := &r.streams[stream]
		i.event(e)
		if e.Now = m.recordTime; e.Now < 0 {
			e.Now = e.Time
		}
		r.events = append(r.events, *e)
	}
	m.events, m.cells = r.events, i
	return m, i.err
}

// readInputs reads all files.
func (t *timeline) readInputs(ctx context.Context) error {
	for i := range t.Inputs {
		in := &t.Inputs[i]
		if in.Log != nil {
			if err := t.readLog(ctx, i); err != nil {
				return err
			}
			continue
		}
		stream, only := in.Stream, t.Registry.Streams
		if stream != nil {
			stream = t.withRecordTime(stream)
			only = []*record.Stream{stream}
		}
		var err error
		if in.source, err = in.Open(stream); err != nil {
			return err
		}
		before, aside := t.summary.Passed, t.summary.SetAside
		t.used = 0
		if err := t.readEvents(ctx, i, decoderOf(in.source, only)); err != nil {
			return err
		}
		if n := t.summary.SetAside - aside; t.used == 0 && n > 0 {
			return fmt.Errorf("%s: all %d events were set aside; the first: %w", in.Name, n, t.summary.FirstSetAside)
		}
		if t.used == 0 && t.summary.Passed > before {
			return t.noneOf(in, t.summary.Passed-before)
		}
	}
	if t.Spine != nil {
		return t.readSpine(ctx)
	}
	return nil
}

// decoderOf makes the decoder of a file's events.
func decoderOf(s source.Source, streams []*record.Stream) *record.Decoder {
	if d, ok := s.(source.Decodable); ok {
		return d.NewDecoder(streams)
	}
	return record.NewJSONDecoder(streams)
}

// noneOf returns the error that no stream takes any of the file's n events.
func (t *timeline) noneOf(in *Input, n int) error {
	if in.Stream == nil {
		return fmt.Errorf("%s: none of its %d events matches any stream by topic and match", in.Name, n)
	}
	match := ""
	if in.Stream.Match != nil {
		match = ", which takes events with match " + in.Stream.Match.Text
	}
	return fmt.Errorf("%s: none of its %d events belongs to stream %s%s", in.Name, n, in.Stream.Name, match)
}

// withRecordTime returns the stream, with a field for the record time if that is read from one.
func (t *timeline) withRecordTime(s *record.Stream) *record.Stream {
	if !t.AsServed || t.RecordTime == "" {
		return s
	}
	with := *s
	with.Fields = append(slices.Clone(s.Fields), record.Field{
		Name: recordTimeField, Type: value.Timestamp, Path: strings.Split(t.RecordTime, "."), Required: true,
	})
	return &with
}

func (t *timeline) readEvents(ctx context.Context, input int, decoder *record.Decoder) error {
	in := &t.Inputs[input]
	var e source.Event
	for n := 0; ; n++ {
		if n%lookEvery == 0 {
			if err := t.look(ctx, t.readShare()); err != nil {
				return err
			}
		}
		err := in.source.Next(&e)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Topic == "" {
			if in.Stream == nil {
				return in.source.At(e.Line, errors.New(`expected an envelope {"topic", "key", "value"}; for events without an envelope, name the stream: STREAM=FILE`))
			}
			e.Topic = in.Stream.Topic
		}
		events, err := t.decode(decoder, &e)
		if err == nil && len(events) == 0 {
			t.summary.Passed++
			continue
		}
		if err == nil {
			err = t.addEvent(input, &e, events)
		} else {
			err = t.bad(in, e.Line, err)
		}
		if err != nil {
			return err
		}
	}
}

// decode reads an event as each stream reads it. As served, its record time counts.
func (t *timeline) decode(decoder *record.Decoder, e *source.Event) ([]record.Event, error) {
	r := record.Record{Partition: state.Partition{Topic: e.Topic}, Timestamp: -1, Value: e.Value}
	if !t.AsServed {
		return decoder.Decode(&r)
	}
	r.Timestamp = e.RecordTime
	events, err := decoder.Decode(&r)
	if err != nil || len(events) == 0 {
		return events, err
	}
	at := events[0].Stream.FieldIndex(recordTimeField)
	if at < 0 {
		return events, nil
	}
	// The record time is known now, so the event may turn out to be too far ahead of it.
	e.RecordTime = events[0].Values[at].Num
	r.Timestamp = e.RecordTime
	return decoder.Decode(&r)
}

// addEvent adds an event, as each stream reads it.
func (t *timeline) addEvent(input int, e *source.Event, events []record.Event) error {
	m := moment{input: input, line: e.Line, recordTime: -1, events: events}
	m.key.Time = events[0].Time
	for i := range events {
		if t.Stream != nil && events[i].Stream.Name == t.Stream.Name {
			m.key.Order, m.key.Time = orderRows, events[i].Time
		}
	}
	if t.AsServed {
		if m.recordTime = e.RecordTime; m.recordTime < 0 {
			return t.Inputs[input].at(e.Line, errors.New(`nothing says when the record came, as it was served: --record-time names the field, or the envelope has a "timestamp"`))
		}
		m.key.Time = m.recordTime
	}
	t.used++
	t.summary.span(m.key.Time)
	return t.add(&m, nil)
}

// bad handles an error about an event. As served, and in a log, the event is set aside and the error
// becomes nil.
func (t *timeline) bad(in *Input, line int, err error) error {
	_, poison := errors.AsType[*record.Poison](err)
	err = in.at(line, err)
	if !poison || !t.AsServed && in.Log == nil {
		return err
	}
	if t.summary.SetAside++; t.summary.SetAside == 1 {
		t.summary.FirstSetAside = err
	}
	return nil
}

func (t *timeline) readSpine(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%lookEvery == 0 {
			if err := t.look(ctx, t.readShare()); err != nil {
				return err
			}
		}
		cells, err := t.Spine.rows.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		line := t.Spine.table.Line()
		row, err := t.rowOf()
		if err != nil {
			return t.Spine.table.At(line, err)
		}
		if at := row[0].Time; t.Until != 0 && at >= t.Until {
			return t.Spine.table.At(line, fmt.Errorf("the row is of %s, and only records before %s are read", momentText(at), momentText(t.Until)))
		}
		t.Spine.note(cells)
		t.summary.rowSpan(row[0].Time)
		m := moment{key: extsort.Key{Time: row[0].Time, Order: orderSpine}, input: -1, line: line, recordTime: -1, events: row}
		if err := t.add(&m, cells); err != nil {
			return err
		}
	}
	if t.summary.rowsSeen == 0 {
		return t.Spine.table.At(1, errors.New("the spine has no rows"))
	}
	return nil
}

// momentText returns the text of a moment in ms.
func momentText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z") }

// rowOf decodes the row of the spine that was read last, as an event.
func (t *timeline) rowOf() ([]record.Event, error) {
	events, err := t.Spine.rows.Decode(&record.Record{Partition: state.Partition{Topic: t.Spine.stream.Topic}, Timestamp: -1})
	if poison, ok := errors.AsType[*record.Poison](err); ok {
		if poison.Reason == record.MissingTimestamp {
			return nil, fmt.Errorf("column %s: the row has no time", t.Spine.time)
		}
		return nil, fmt.Errorf("column %s: %s", poison.Path, poison.Message)
	}
	return events, err
}

// readShare returns the share of the files that has been read, or -1 if it is unknown.
func (t *timeline) readShare() float64 {
	var read, size int64
	for i := range t.Inputs {
		if t.Inputs[i].Read == nil {
			return -1
		}
		r, s := t.Inputs[i].Read()
		if s == 0 {
			return -1
		}
		read, size = read+r, size+s
	}
	return float64(read) / float64(size)
}
