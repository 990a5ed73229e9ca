package materialize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/extsort"
	"github.com/weir-stream/weir/state"
)

// State keeps the state of a replay; it must be empty.
type State interface {
	Apply(context.Context, *state.Batch) error
	query.Reader
	// Log returns the log of an entity, the position of its first record, and where the caller may
	// keep data beside it.
	Log(series *state.Series, entity []byte) (log state.Log, start int64, beside *any)
}

// Replay makes one training set.
type Replay struct {
	Registry *features.Registry
	Inputs   []Input
	// Stream is the stream whose events are the rows; nil if the rows are those of Spine.
	Stream  *record.Stream
	Spine   *Spine
	Columns []Column
	State   State
	// AsServed counts an event from the time when its record arrived, as in production, and not
	// from its own time. Events that cannot be used are then set aside, as those of a Log are always.
	AsServed bool
	// RecordTime is the path of the arrival time of an event's record; empty if envelopes have it.
	RecordTime string
	// ExcludeCurrent computes the rows of Stream without their own events.
	ExcludeCurrent bool
	// Until leaves out the records of logs whose timestamps, in ms, are not before it, and refuses
	// rows of a spine whose moments are not; 0 leaves out none.
	Until int64
	// MaxRecordBytes is the size of a Log's record above which it is poison; 0 for none.
	MaxRecordBytes int
	// Memory is how many bytes of events and rows are held before they are sorted on disk; 0 means
	// DefaultMemory.
	Memory int64
	// Progress, if not nil, is called from time to time.
	Progress func(Progress)

	answers answers
	summary Summary
	batch   state.Batch
	cells   []Cell
}

// Progress is the progress of a replay.
type Progress struct {
	Reading bool    // files are being read; afterwards rows are made
	Share   float64 // share done of the phase; -1 if unknown
	Events  int     // read
	Rows    int     // made
}

// Topics are the topics whose events the columns and the rows need, sorted.
func (r *Replay) Topics() (topics []string) {
	if r.Stream != nil {
		topics = append(topics, r.Stream.Topic)
	}
	for i := range r.Columns {
		if f := r.Columns[i].feature; f != nil {
			for _, kept := range f.Retained() {
				topics = append(topics, kept.Topic)
			}
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// lookEvery is how many events pass between checks of the context and the progress.
const lookEvery = 256

// DefaultMemory is the default of Replay.Memory.
const DefaultMemory = 64 << 20

// Run reads all files, replays them, and writes the rows, ordered by moment and then as in their
// file, to a writer that it opens for the columns, and closes after writing all. Errors about an
// event or a row include its location.
func (r *Replay) Run(ctx context.Context, open func([]Column) (Writer, error)) (Summary, error) {
	t := &timeline{Replay: r, sorter: extsort.New(cmp.Or(r.Memory, DefaultMemory))}
	err := r.run(ctx, t, open)
	if closed := t.sorter.Close(); err == nil {
		err = closed
	}
	return r.summary, err
}

func (r *Replay) run(ctx context.Context, t *timeline, open func([]Column) (Writer, error)) error {
	if err := r.answers.prepare(r.Columns, r.ExcludeCurrent); err != nil {
		return err
	}
	t.prepare()
	if err := t.readInputs(ctx); err != nil {
		return err
	}
	r.summary.Spilled = t.sorter.Spilled()
	if h := r.history(); h != nil {
		r.answers.complete(h)
	}
	if r.Spine != nil {
		r.Spine.setTypes(r.Columns)
	}
	w, err := open(r.Columns)
	if err != nil {
		return err
	}
	if err := r.replay(ctx, t, w); err != nil {
		return err
	}
	if err := r.summary.empty(r); err != nil {
		return err
	}
	return w.Close()
}

// replay applies the events in order and writes the rows.
func (r *Replay) replay(ctx context.Context, t *timeline, w Writer) error {
	sorted, err := t.sorter.Sorted()
	if err != nil {
		return err
	}
	mapper, total := r.Registry.NewJSONMapper(), t.sorter.Len()
	for n := 0; ; n++ {
		if n%lookEvery == 0 {
			if err := r.lookAt(ctx, Progress{Share: float64(n) / float64(max(total, 1))}); err != nil {
				return err
			}
		}
		key, item, err := sorted.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := t.read(key, item)
		if err != nil {
			return err
		}
		if m.input < 0 {
			err = r.spineRow(ctx, &m, w)
		} else {
			err = r.event(ctx, t, &m, mapper, int64(n), w)
		}
		if err != nil {
			return err
		}
	}
}

// event applies an event, and writes its row if it is one.
func (r *Replay) event(ctx context.Context, t *timeline, m *moment, mapper *features.Mapper, offset int64, w Writer) error {
	in := &r.Inputs[m.input]
	at := func(err error) error { return in.at(m.line, err) }
	r.batch.Reset()
	r.batch.Ranges = append(r.batch.Ranges[:0], state.PartitionRange{})
	outcome, err := mapper.MapEvents(m.events, offset, m.recordTime, 0, &r.batch)
	if err != nil {
		return t.bad(in, m.line, err)
	}
	r.summary.Events++
	if outcome.Late {
		r.summary.Late++
	}
	r.batch.Now = m.key.Time
	for i := range m.events {
		if e := &m.events[i]; e.Stream == r.Stream {
			return r.streamRow(ctx, m, e, at, w)
		}
	}
	return r.State.Apply(ctx, &r.batch)
}

// streamRow applies an event and writes its row.
func (r *Replay) streamRow(ctx context.Context, m *moment, e *record.Event, at func(error) error, w Writer) error {
	if e.ID == nil {
		return at(fmt.Errorf("stream %s: %s: the event has no id", r.Stream.Name, idColumn(r.Stream).Name))
	}
	r.cells = r.answers.begin(r.cells, e, m.key.Time)
	if err := r.answers.fill(ctx, r.State, r.cells, e, true); err != nil {
		return at(err)
	}
	if err := r.State.Apply(ctx, &r.batch); err != nil {
		return err
	}
	if err := r.answers.fill(ctx, r.State, r.cells, e, false); err != nil {
		return at(err)
	}
	return r.write(w, at)
}

// spineRow writes a row of the spine.
func (r *Replay) spineRow(ctx context.Context, m *moment, w Writer) error {
	at := func(err error) error { return r.Spine.table.At(m.line, err) }
	e := &m.events[0]
	r.cells = r.answers.begin(r.cells, e, m.key.Time)
	for i := range r.Columns {
		c := &r.Columns[i]
		if c.of != passedOn {
			break
		}
		text := m.cells.text()
		if m.cells.err != nil {
			return m.cells.err
		}
		if text == nil {
			continue
		}
		var err error
		if r.cells[i], err = passed(c.field.Type, text); err != nil {
			return at(fmt.Errorf("column %s: %w", c.Name, err))
		}
	}
	for _, before := range []bool{true, false} {
		if err := r.answers.fill(ctx, r.State, r.cells, e, before); err != nil {
			return at(err)
		}
	}
	return r.write(w, at)
}

func (r *Replay) write(w Writer, at func(error) error) error {
	err := w.Write(r.cells)
	if _, about := errors.AsType[*cellError](err); about {
		return at(err)
	}
	if err != nil {
		return err
	}
	r.summary.Rows++
	r.summary.add(&r.answers)
	return nil
}

// look reports how far the reading is, and ends it with the context.
func (r *Replay) look(ctx context.Context, share float64) error {
	return r.lookAt(ctx, Progress{Reading: true, Share: share})
}

func (r *Replay) lookAt(ctx context.Context, p Progress) error {
	if r.Progress != nil {
		p.Events, p.Rows = r.summary.eventsSeen, r.summary.Rows
		r.Progress(p)
	}
	return ctx.Err()
}
