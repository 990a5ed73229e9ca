package materialize

import (
	"cmp"
	"context"
	"io"
	"runtime"
	"slices"
	"sync"

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
	query.Reader
	// Log returns the log of an entity, the position of its first record, and a place where the caller may keep data
	// beside it.
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
	// ExcludeCurrent computes the rows of Stream without their own events.
	ExcludeCurrent bool
	// Until, in ms, leaves out the records of logs with that timestamp or a later one, and refuses such rows of a
	// spine; 0 leaves out none.
	Until int64
	// MaxRecordBytes is the size of a Log's record above which it is poison; 0 for none.
	MaxRecordBytes int
	// Memory is how many bytes of events and rows are held before they are sorted on disk; 0 means
	// DefaultMemory.
	Memory int64
	// Progress, if not nil, is called from time to time.
	Progress func(Progress)

	block   int // moments of a block; 0 means as many as fit
	parts   []*part
	summary Summary
}

// Progress is the progress of a replay.
type Progress struct {
	Reading bool    // files are being read; afterwards rows are made
	Share   float64 // share done of the phase; -1 if unknown
	Events  int     // read
	Rows    int     // made
}

// Topics returns the topics whose events the columns and the rows need, sorted.
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

// Run reads all files, replays them, and writes the rows, ordered by moment and then as in their file, to a writer that
// it opens with the columns, and closes at the end. Errors about an event or a row include its location.
func (r *Replay) Run(ctx context.Context, open func([]Column) (Writer, error)) (Summary, error) {
	t := &timeline{Replay: r, sorter: extsort.New(cmp.Or(r.Memory, DefaultMemory)), streams: r.Registry.Streams}
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
	if err := t.newParts(); err != nil {
		return err
	}
	if err := t.readInputs(ctx); err != nil {
		return err
	}
	r.summary.Spilled = t.sorter.Spilled()
	if h := r.history(); h != nil {
		for _, p := range r.parts {
			p.answers.complete(h)
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

// piecesOfCore is how many pieces of work there are for each of several cores, so that none waits long
// for the last one.
const piecesOfCore = 4

// pieces is how many parts the entities, and the moments of a block, are divided into.
func (r *Replay) pieces() int {
	n := cmp.Or(r.Cores, runtime.GOMAXPROCS(0))
	if n > 1 {
		n *= piecesOfCore
	}
	return min(n, mostParts)
}

// newParts makes the parts over which the entities are spread.
func (t *timeline) newParts() error {
	r := t.Replay
	r.parts = nil
	for i := range r.pieces() {
		p := &part{index: i, state: r.NewState(), last: map[uint64]int32{}}
		if err := p.answers.prepare(r.Columns, r.ExcludeCurrent); err != nil {
			return err
		}
		p.subject.entities, p.subject.lacks = make([][]byte, len(p.answers.keys)), make([]bool, len(p.answers.keys))
		inOrder := !p.answers.ofOneEntity()
		if inOrder || p.answers.owns {
			p.reader = t.newReader()
		}
		r.parts = append(r.parts, p)
		if t.inOrder = inOrder; inOrder {
			break
		}
	}
	return nil
}

// replay applies the events in order and writes the rows.
func (r *Replay) replay(ctx context.Context, t *timeline, w Writer) error {
	sorted, err := t.sorter.Sorted()
	if err != nil {
		return err
	}
	var all []*changes
	for range r.pieces() {
		all = append(all, t.newChanges())
	}
	out := t.newOutput(w)
	go out.run()
	err = r.blocks(ctx, t, sorted, all, out)
	if ended := out.end(); err == nil {
		err = ended
	}
	for _, p := range r.parts {
		r.summary.add(&p.answers)
	}
	return err
}

// blocks makes the rows of one block after another, and passes them to the output.
func (r *Replay) blocks(ctx context.Context, t *timeline, sorted *extsort.Iterator, all []*changes, out *output) error {
	for done, total, most := 0, t.sorter.Len(), cmp.Or(r.block, momentsOf(r.Columns)); ; {
		if err := r.lookAt(ctx, Progress{Share: float64(done) / float64(max(total, 1))}); err != nil {
			return err
		}
		b := <-out.done
		err := b.err
		if err == nil {
			err = b.read(sorted, most)
		}
		if err == nil {
			err = r.rows(ctx, t, b, all)
		}
		if err != nil {
			out.done <- b
			if err == io.EOF {
				return nil
			}
			return err
		}
		done += len(b.keys)
		out.todo <- b
	}
}

// rows applies the events of a block and answers its rows.
func (r *Replay) rows(ctx context.Context, t *timeline, b *block, all []*changes) error {
	err := together(len(all), func(i int) error {
		return all[i].find(b, i*len(b.keys)/len(all), (i+1)*len(b.keys)/len(all))
	})
	if err != nil {
		return err
	}
	b.rows = b.rows[:0]
	for _, c := range all {
		for _, f := range c.failures {
			if err := t.bad(&r.Inputs[f.input], f.line, f.err); err != nil {
				return err
			}
		}
		c.rowsBefore = int32(len(b.rows))
		b.rows = append(b.rows, c.rows...)
		r.summary.Events, r.summary.Late = r.summary.Events+c.events, r.summary.Late+c.late
	}
	r.summary.Rows += len(b.rows)
	b.cells = slices.Grow(b.cells[:0], len(b.rows)*b.width)[:len(b.rows)*b.width]
	return together(len(r.parts), func(i int) error {
		p := r.parts[i]
		if err := p.replay(ctx, b, all); err != nil {
			return err
		}
		p.state.Sweep(b.keys[len(b.keys)-1].Time)
		return nil
	})
}

// together calls a function n times concurrently, and returns the first error by index.
func together(n int, do func(int) error) error {
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := 1; i < n; i++ {
		running.Go(func() { errs[i] = do(i) })
	}
	errs[0] = do(0)
	running.Wait()
	return cmp.Or(errs...)
}

// look reports the progress of reading, and ends it with the context.
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
