package materialize

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize/extsort"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
)

// reading is what one goroutine reads of an input, until it is added to the timeline.
type reading struct {
	*timeline
	input   int // -1 for the spine
	source  source.Source
	decoder source.Decoder
	part    source.Part // what is read of a text

	batch   extsort.Batch
	summary Summary // of what was read
	item    []byte

	mapper  *features.Mapper           // see check
	earlier *record.Earlier            // of the topic that is read; nil if no event repeats another one
	rows    map[string]*record.Earlier // by topic, of a file that may have such streams, whose rows are like the records of a partition
	came    int64                      // how many of these
	arrived int64                      // when the last event of a log came, in ms
}

// lookEvery is how many events are read between checks of the context and the progress, unless they are read in parts.
const lookEvery = 256

// partSize is about how many bytes of a text are read by one goroutine at a time.
const partSize = 64 << 10

// take adds what was read to the timeline.
func (t *timeline) take(ctx context.Context, r *reading) error {
	t.summary.read(&r.summary)
	err := t.sorter.Add(&r.batch)
	r.summary = Summary{}
	r.batch.Reset()
	if err != nil {
		return err
	}
	return t.look(ctx, t.readShare())
}

// readFile reads the events of streams from a file, and the parts of a text concurrently.
func (t *timeline) readFile(ctx context.Context, input int, from source.Source, streams []*record.Stream) error {
	take := func(r *reading) error { return t.take(ctx, r) }
	text, ok := from.(source.Divisible)
	rows := map[string]*record.Earlier{}
	for _, s := range streams {
		for _, topic := range s.Topics() {
			if e := record.NewEarlier(streams, topic, state.NewSecret()); e != nil {
				rows[topic] = e
			}
		}
	}
	if !ok || len(rows) > 0 {
		r := &reading{timeline: t, input: input, source: from, decoder: source.NewDecoder(from, streams, t.recordTime()), rows: rows}
		for {
			err := r.events(lookEvery)
			if err != nil && err != io.EOF {
				return err
			}
			if taken := take(r); taken != nil || err == io.EOF {
				return taken
			}
		}
	}
	var parts []*reading
	for range 2 * (t.cores() + 1) { // each core has one to go on with, and others are filled and taken
		reader := text.NewPartReader()
		parts = append(parts, &reading{timeline: t, input: input, source: reader, decoder: source.NewDecoder(reader, streams, t.recordTime())})
	}
	next := func(r *reading) error { return text.Cut(&r.part, cmp.Or(t.partSize, partSize)) }
	work := func(r *reading) error {
		r.source.(source.PartReader).Reset(&r.part)
		if err := r.events(math.MaxInt); err != io.EOF {
			return err
		}
		return nil
	}
	return inOrder(parts, next, work, take)
}

// recordTime returns the path of a field that says when an event counts; empty for none.
func (t *timeline) recordTime() string {
	if !t.AsServed {
		return ""
	}
	return t.RecordTime
}

// events reads the next events, n at most. It returns io.EOF after the last one.
func (r *reading) events(n int) error {
	in := &r.Inputs[r.input]
	var e source.Event
	for range n {
		if err := r.source.Next(&e); err != nil {
			return err
		}
		if e.Topic == "" {
			if in.Stream == nil {
				err := errors.New(`expected an envelope {"topic", "key", "value"}; for events without an envelope, name the stream: STREAM=FILE`)
				return in.at(e.Line, source.WithHint(err, e.Value))
			}
			e.Topic = in.Stream.Topic
		}
		events, err := r.decoder.Event(&e) // the record's time limits that of its event, also if rows go by event time
		if r.earlier = r.rows[e.Topic]; r.earlier != nil {
			r.pass(e.RecordTime, events)
		}
		if err != nil {
			err = r.bad(&r.summary, in, e.Line, source.WithHint(err, e.Value))
		} else {
			err = r.addFirst(&e, events)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass tells that a row has come, at a time that an envelope says or a field, or else at that of its event.
func (r *reading) pass(came int64, events []record.Event) {
	newest := came
	for i := range events {
		e := &events[i]
		if came != record.NoTime {
			e.Now = came
		}
		newest = max(newest, e.Now)
	}
	r.came++
	r.earlier.Pass(r.came, newest)
}

// addEvent adds an event, as each stream reads it.
func (r *reading) addEvent(e *source.Event, events []record.Event) error {
	if len(events) == 0 {
		if r.summary.Passed++; r.summary.firstPassed == nil {
			r.summary.firstPassed = slices.Clone(e.Value)
		}
		return nil
	}
	m := moment{input: r.input, line: e.Line, recordTime: -1}
	byTime := func(a, b record.Event) int { return cmp.Compare(a.Time, b.Time) }
	if !r.AsServed && !slices.IsSortedFunc(events, byTime) {
		slices.SortStableFunc(events, byTime)
	}
	if !r.AsServed && events[0].Time < events[len(events)-1].Time || distinct(events) < len(events) {
		if err := r.check(events); err != nil {
			return r.bad(&r.summary, &r.Inputs[r.input], e.Line, err)
		}
	}
	if r.AsServed {
		if m.recordTime = e.RecordTime; m.recordTime == record.NoTime {
			return r.Inputs[r.input].at(e.Line, errors.New(`nothing says when the record came, as it was served: --record-time names the field, or the envelope has a "timestamp"`))
		}
		r.addInstant(&m, r.arrival(m.recordTime, events[0].Stream), events)
		return nil
	}
	for n := 0; len(events) > 0; events = events[n:] {
		for n = 1; n < len(events) && events[n].Time == events[0].Time; {
			n++
		}
		r.addInstant(&m, events[0].Time, events[:n])
	}
	return nil
}

// arrival returns when the event of a record came, by its timestamp. Producers' timestamps may go back within a log, but a
// record did not come before those of earlier offsets. One whose timestamp is far ahead does not hold back those after it.
func (r *reading) arrival(timestamp int64, s *record.Stream) int64 {
	if r.Inputs[r.input].Log == nil {
		return timestamp
	}
	if back := r.arrived - timestamp; back < 0 || back > s.MaxFuture.Milliseconds() {
		r.arrived = timestamp
	}
	return r.arrived
}

// distinct returns how many of the first events are of different streams. The events of the elements of a record are moments of
// their own, in their order.
func distinct(events []record.Event) int {
	for n := range events {
		if slices.ContainsFunc(events[:n], func(e record.Event) bool { return e.Stream == events[n].Stream }) {
			return n
		}
	}
	return len(events)
}

// addInstant adds the events that a record makes of the same time. Those of elements take several moments. A row is asked after all
// other streams' events of its record, or before them without its own, however the streams are named.
func (r *reading) addInstant(m *moment, at int64, events []record.Event) {
	isRow := func(e record.Event) bool { return r.Stream != nil && e.Stream.Name == r.Stream.Name }
	if distinct(events) < len(events) {
		slices.SortStableFunc(events, func(a, b record.Event) int {
			switch {
			case isRow(a) == isRow(b):
				return 0
			case isRow(a) == r.ExcludeCurrent:
				return -1
			default:
				return 1
			}
		})
	}
	if !m.further {
		r.summary.eventsSeen.note(at)
	}
	m.key = extsort.Key{Time: at, Order: orderOthers}
	if slices.ContainsFunc(events, isRow) {
		m.key.Order = orderRows // of all moments, so that no row of an earlier record counts some of them only
	}
	for n := 0; len(events) > 0; events = events[n:] {
		n = distinct(events)
		m.events = events[:n]
		r.add(m, nil)
		m.further = true
	}
}

// check returns an error if an event is poison for some stream. If the streams read different times from it, or one makes
// several events of it, it is applied at several moments, and is poison for all of them.
func (r *reading) check(events []record.Event) error {
	if r.mapper == nil {
		r.mapper = r.Registry.NewJSONMapper()
	}
	return r.mapper.Check(events)
}

// add adds a moment to the batch.
func (r *reading) add(m *moment, cells []source.Cell) {
	r.item = binary.AppendVarint(r.item[:0], int64(m.input))
	r.item = binary.AppendVarint(r.item, int64(m.line))
	r.item = binary.AppendVarint(r.item, m.recordTime)
	n := int64(len(m.events))
	if m.further {
		n = -n
	}
	r.item = binary.AppendVarint(r.item, n)
	for i := range m.events {
		e, stream := &m.events[i], len(r.Registry.Streams)
		if m.input >= 0 {
			stream = slices.IndexFunc(r.Registry.Streams, func(s *record.Stream) bool { return s.Name == e.Stream.Name })
		}
		r.item = binary.AppendVarint(r.item, int64(stream))
		r.item = appendEvent(r.item, e, len(r.streams[stream].Fields))
	}
	r.batch.Add(m.key, appendCells(r.item, cells))
}

// bad handles an error about an event. As served, and in a log, the event is set aside, and the error becomes nil.
func (r *Replay) bad(s *Summary, in *Input, line int, err error) error {
	_, poison := errors.AsType[*record.Poison](err)
	err = in.at(line, err)
	if !poison || !r.AsServed && in.Log == nil {
		return err
	}
	s.read(&Summary{SetAside: 1, FirstSetAside: err})
	return nil
}

// readSpine reads the rows of the spine.
func (t *timeline) readSpine(ctx context.Context) error {
	r := &reading{timeline: t, input: -1}
	for n := 1; ; n++ {
		err := r.row()
		if err != nil && err != io.EOF {
			return err
		}
		if err == nil && n%lookEvery > 0 {
			continue
		}
		if taken := t.take(ctx, r); taken != nil {
			return taken
		}
		if err == io.EOF {
			break
		}
	}
	if t.summary.rowsSeen.n == 0 {
		return t.Spine.table.At(1, errors.New("the spine has no rows"))
	}
	return nil
}

// row reads the next row of the spine.
func (r *reading) row() error {
	cells, err := r.Spine.rows.Next()
	if err != nil {
		return err
	}
	line := r.Spine.table.Line()
	row, err := r.Spine.row()
	if err != nil {
		return r.Spine.table.At(line, err)
	}
	at := row[0].Time
	if r.Until != 0 && at >= r.Until {
		return r.Spine.table.At(line, fmt.Errorf("the row is of %s, and only records before %s are read", spelling.Moment(at), spelling.Moment(r.Until)))
	}
	if r.Began != 0 && at >= r.Began {
		return r.Spine.table.At(line, fmt.Errorf("the row is of %s, and only what was there when the command began, at %s, is read",
			spelling.Moment(at), spelling.Moment(r.Began)))
	}
	r.Spine.note(cells)
	r.summary.rowsSeen.note(at)
	r.add(&moment{key: extsort.Key{Time: at, Order: orderSpine}, input: -1, line: line, recordTime: -1, events: row}, cells)
	return nil
}
