package materialize

import (
	"context"
	"fmt"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/extsort"
	"github.com/weir-stream/weir/materialize/source"
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
	// Close is called when the file has been read; it is nil if there is nothing to close.
	Close func() error
	// Read returns how many bytes or records have been read, and of how many. It is nil if there is
	// no progress to report.
	Read func() (read, size int64)
	Log  Log // nil for a file

	places source.Places // of a file
}

// at adds the location of an event to an error about it.
func (in *Input) at(line int, err error) error {
	if in.Log != nil {
		return fmt.Errorf("%s at offset %d: %w", in.Name, line, err)
	}
	return in.places.At(line, err)
}

// The order within one millisecond. The row of an event counts all records that make no rows, and of those that make rows, also what
// they make for other streams, all up to and including its own. A row of a spine counts all events.
const (
	orderOthers = iota
	orderRows
	orderSpine
)

// timeline holds all events and rows in the order of the replay.
type timeline struct {
	*Replay
	sorter  *extsort.Sorter
	streams []*record.Stream // the registry's, and then the spine's
	inOrder bool             // features depend on several entities, so all is replayed in order
}

// moment is an event or a row of the timeline.
type moment struct {
	key        extsort.Key
	input      int   // -1 for a row of the spine
	line       int   // or the offset in a log
	recordTime int64 // -1 for none
	// events are the event as each stream reads it, or the one that a row was decoded to. By event time they are those with
	// the time of the moment: streams of a topic may each read another time from a record. Further is true for all of its
	// moments but the first, for which it counts as an event.
	events  []record.Event
	further bool
	cells   item // of a row of the spine: the cells that are passed on
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

// reader reads moments of a timeline for one goroutine.
type reader struct {
	streams []record.Event // the event of each stream that was read last
	wanted  [][]bool       // by stream, the values that are read; nil for all
	events  []record.Event // those of a moment
}

func (t *timeline) newReader() *reader {
	r := &reader{wanted: make([][]bool, len(t.streams))}
	for _, s := range t.streams {
		r.streams = append(r.streams, record.Event{Stream: s, Values: make([]value.Value, len(s.Fields))})
	}
	return r
}

// read returns the inverse of reading.add. The moment's events are valid until the next read, and alias data.
func (r *reader) read(key extsort.Key, data []byte) (moment, error) {
	i := item{rest: data}
	m := moment{key: key, input: int(i.int()), line: int(i.int()), recordTime: i.int()}
	r.events = r.events[:0]
	n := i.int()
	if n < 0 {
		n, m.further = -n, true
	}
	for ; n > 0 && i.err == nil; n-- {
		stream := i.int()
		if stream < 0 || stream >= int64(len(r.streams)) {
			return m, errCut
		}
		e := &r.streams[stream]
		i.event(e, r.wanted[stream])
		if e.Now = m.recordTime; e.Now < 0 {
			e.Now = e.Time
		}
		r.events = append(r.events, *e)
	}
	m.events, m.cells = r.events, i
	return m, i.err
}

// readInputs reads all inputs.
func (t *timeline) readInputs(ctx context.Context) error {
	if err := t.look(ctx, t.readShare()); err != nil {
		return err
	}
	for i := range t.Inputs {
		if err := t.readInput(ctx, i); err != nil {
			return err
		}
	}
	if t.Spine != nil {
		return t.readSpine(ctx)
	}
	return nil
}

func (t *timeline) readInput(ctx context.Context, input int) error {
	in := &t.Inputs[input]
	if in.Log != nil {
		return t.readLog(ctx, input)
	}
	streams, stream := t.Registry.Streams, in.Stream
	if stream != nil {
		streams, stream = []*record.Stream{stream}, source.WithTime(stream, t.recordTime())
	}
	from, err := in.Open(stream)
	if err != nil {
		return err
	}
	in.places = from
	defer func() {
		in.places = source.PlacesOf(from) // there may be thousands of files
		if in.Close != nil {
			_ = in.Close()
		}
	}()
	t.summary.firstPassed = nil
	before := t.summary
	if err := t.readFile(ctx, input, from, streams); err != nil {
		return err
	}
	if t.summary.eventsSeen.n > before.eventsSeen.n {
		return nil
	}
	if n := t.summary.SetAside - before.SetAside; n > 0 {
		return fmt.Errorf("%s: all %d events were set aside; the first: %w", in.Name, n, t.summary.FirstSetAside)
	}
	if n := t.summary.Passed - before.Passed; n > 0 {
		return t.noneOf(in, n)
	}
	return nil
}

// noneOf returns the error that no stream takes any of the file's n events.
func (t *timeline) noneOf(in *Input, n int) error {
	if in.Stream == nil {
		return fmt.Errorf("%s: none of its %d events matches any stream by topic and match", in.Name, n)
	}
	return source.NoneOf(in.Name, int64(n), in.Stream, t.summary.firstPassed)
}

// readShare returns the share of the files that has been read, or -1 if it is unknown.
func (t *timeline) readShare() float64 {
	var read, size int64
	for i := range t.Inputs {
		if t.Inputs[i].Read == nil {
			return -1
		}
		r, s := t.Inputs[i].Read()
		if s == 0 && t.Inputs[i].Log == nil { // a partition may be empty
			return -1
		}
		read, size = read+r, size+s
	}
	if size == 0 {
		return -1
	}
	return float64(read) / float64(size)
}
