package materialize

import (
	"cmp"
	"context"
	"runtime"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/extsort"
	"github.com/weir-stream/weir/state"
)

// State keeps the state of a replay for some of the entities. It is not safe for concurrent use.
type State interface {
	// Update applies mutations to an entity at a moment, in milliseconds. The moments of an entity never go back.
	Update(entity []byte, mutations []state.Mutation, now int64)
	// Sweep drops state that is too old to be asked for at a moment, if that is worth the time.
	Sweep(now int64)
	// Len returns the number of entities, each as often as series have state of it.
	Len() int
	query.Reader
	// Log returns the log of an entity, and a place where the caller may keep data beside it.
	Log(series *state.Series, entity []byte) (log state.GrowingLog, beside *any)
}

// Replay makes one training set.
type Replay struct {
	Registry *features.Registry
	Inputs   []Input
	// Stream is the stream whose events are the rows; nil if the rows are those of Spine.
	Stream  *record.Stream
	Spine   *Spine
	Columns []Column
	// NewState makes an empty State.
	NewState func() State
	// Cores is how many cores share the entities; 0 means all. One does all if some feature depends on
	// the events of several entities.
	Cores int
	// AsServed counts an event from the time when its record arrived, as in production, and not from its own time.
	// Events that cannot be used are then set aside, as those of a Log always are.
	AsServed bool
	// RecordTime is the path of the arrival time of an event's record; empty if envelopes have it.
	RecordTime string
	// Tables has the rows of LookedUp as of all moments; nil if there are none.
	Tables query.Tables
	// ExcludeCurrent computes the rows of Stream without their own events, of columns that were selected for it.
	ExcludeCurrent bool
	// Until, in ms, leaves out the records of logs with that timestamp or a later one, and refuses such rows of a
	// spine; 0 leaves out none.
	Until int64
	// Began, in ms, is when the ends of logs were looked for: a row of a spine at that moment or later is refused, since
	// what it counts is not there yet; 0 refuses none.
	Began int64
	// Seal proves which records of logs are copies of dead letters, so that an event is not read twice. Without it all are
	// events.
	Seal state.Seal
	// MaxRecordBytes is the size of a Log's record above which it is poison; 0 for none.
	MaxRecordBytes int
	// Memory is about how many bytes of events and rows are held, before they are sorted on disk, and while they are replayed; 0
	// means DefaultMemory.
	Memory int64
	// Progress, if not nil, is called from time to time.
	Progress func(Progress)

	block    int     // moments of a block; 0 means as many as fit
	partSize int     // see the constant; 0 means that
	parts    []State // of the entities
	workers  []*worker
	summary  Summary
}

// Progress is the progress of a replay.
type Progress struct {
	Reading bool    // files are being read; afterwards rows are made
	Share   float64 // share done of the phase; -1 if unknown
	Events  int     // read
	Rows    int     // made
}

// LookedUp returns the tables of which the columns need rows.
func (r *Replay) LookedUp() []*features.Table { return features.TablesOf(r.asked()) }

// asked returns the features of the columns.
func (r *Replay) asked() (asked []*features.Feature) {
	for i := range r.Columns {
		if f := r.Columns[i].feature; f != nil {
			asked = append(asked, f)
		}
	}
	return asked
}

// Topics returns the topics whose events the columns and the rows need, sorted.
func (r *Replay) Topics() []string {
	topics := features.TopicsOf(r.asked())
	if r.Stream != nil {
		topics = append(topics, r.Stream.Topics()...)
		slices.Sort(topics)
	}
	return slices.Compact(topics)
}

// DefaultMemory is the default of Replay.Memory.
const DefaultMemory = 64 << 20

func (r *Replay) memory() int64 { return cmp.Or(r.Memory, DefaultMemory) }

// Run reads all files, replays them, and writes the rows, ordered by moment and then as in their file, to a writer that
// it opens with the columns, and closes at the end. Errors about an event or a row include its location.
func (r *Replay) Run(ctx context.Context, open func([]Column) (Writer, error)) (Summary, error) {
	t := &timeline{Replay: r, sorter: extsort.New(r.memory()), streams: r.Registry.Streams}
	if r.Spine != nil {
		t.streams = append(slices.Clone(t.streams), r.Spine.stream)
	}
	err := r.run(ctx, t, open)
	if closed := t.sorter.Close(); err == nil {
		err = closed
	}
	return r.summary, err
}

func (r *Replay) run(ctx context.Context, t *timeline, open func([]Column) (Writer, error)) error {
	t.newWorkers()
	if err := t.readInputs(ctx); err != nil {
		return err
	}
	r.summary.Spilled = t.sorter.Spilled()
	if h := r.history(); h != nil {
		for _, w := range r.workers {
			w.answers.complete(h)
		}
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

// The pieces of work of each core, and the least number of parts of the entities: so many that no core waits long for
// the last one, and that what changes in a part fits into a core's cache.
const (
	piecesOfCore = 4
	leastParts   = 256
)

// cores is how many cores are used.
func (r *Replay) cores() int { return min(cmp.Or(r.Cores, runtime.GOMAXPROCS(0)), maxWorkers) }

// newWorkers makes the workers, and the parts over which the entities are spread.
func (t *timeline) newWorkers() {
	r, cores := t.Replay, t.cores()
	r.parts, r.workers = nil, nil
	for len(r.parts) < max(leastParts, piecesOfCore*cores) {
		r.parts = append(r.parts, r.NewState())
	}
	for i := range cores {
		w := &worker{index: i}
		w.answers.prepare(r.Columns, r.ExcludeCurrent)
		w.answers.reading.SetTables(r.Tables)
		if r.Stream != nil {
			w.answers.maxFuture = r.Stream.MaxFuture.Milliseconds()
		}
		w.subject.entities, w.subject.lacks = make([][]byte, len(w.answers.keys)), make([]bool, len(w.answers.keys))
		if t.inOrder = !w.answers.ofOneEntity(); t.inOrder || w.answers.owns {
			w.reader = t.newReader()
		}
		r.workers = append(r.workers, w)
		if t.inOrder {
			r.parts = r.parts[:1]
			break
		}
	}
}

// replay applies the events in order and writes the rows.
func (r *Replay) replay(ctx context.Context, t *timeline, w Writer) error {
	sorted, err := t.sorter.Sorted()
	if err != nil {
		return err
	}
	var all []*changes
	pieces := r.cores()
	if pieces > 1 {
		pieces *= piecesOfCore
	}
	for range pieces {
		all = append(all, t.newChanges())
	}
	total := max(t.sorter.Len(), 1)
	average, done := int(t.sorter.Bytes()/int64(total)), 0
	next := func(b *block) error {
		if err := r.lookAt(ctx, Progress{Share: float64(done) / float64(total)}); err != nil {
			return err
		}
		if err := b.read(sorted, min(total, cmp.Or(r.block, r.moments())), average, r.textBytes()); err != nil {
			return err
		}
		done += len(b.keys)
		return r.rows(ctx, b, all)
	}
	made := func(*block) error { return nil }
	err = inOrder(t.newBlocks(), next, made, t.newOutput(w).write)
	for _, w := range r.workers {
		r.summary.add(&w.answers)
	}
	return err
}

// rows applies the events of a block and answers its rows.
func (r *Replay) rows(ctx context.Context, b *block, all []*changes) error {
	err := together(r.cores(), len(all), func(_, i int) error {
		return all[i].find(b, i*len(b.keys)/len(all), (i+1)*len(b.keys)/len(all))
	})
	if err != nil {
		return err
	}
	b.rows = b.rows[:0]
	for _, c := range all {
		for _, f := range c.failures {
			if err := r.bad(&r.summary, &r.Inputs[f.input], f.line, f.err); err != nil {
				return err
			}
		}
		c.rowsBefore = int32(len(b.rows))
		b.rows = append(b.rows, c.rows...)
		r.summary.Events, r.summary.Late, r.summary.NoID = r.summary.Events+c.events, r.summary.Late+c.late, r.summary.NoID+c.noID
	}
	r.summary.Rows += len(b.rows)
	b.cells = slices.Grow(b.cells[:0], len(b.rows)*len(b.types))[:len(b.rows)*len(b.types)]
	return together(len(r.workers), len(r.parts), func(worker, part int) error {
		return r.workers[worker].replay(ctx, b, part, r.parts[part], all)
	})
}

// look reports the progress of reading, and ends it with the context.
func (r *Replay) look(ctx context.Context, share float64) error {
	return r.lookAt(ctx, Progress{Reading: true, Share: share})
}

func (r *Replay) lookAt(ctx context.Context, p Progress) error {
	if r.Progress != nil {
		p.Events, p.Rows = r.summary.eventsSeen.n, r.summary.Rows
		r.Progress(p)
	}
	return ctx.Err()
}
