package materialize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// State is what a replay keeps state in; it has to be empty.
type State interface {
	Apply(context.Context, *state.Batch) error
	query.Reader
}

// Summary says what a replay has done.
type Summary struct {
	Events int // written, a row each
	Passed int // events of the file that the stream's match did not take
	// Capped is the number of values that a cap may have made too small: the
	// stream's features have reached their max.
	Capped int
	// Uncertain is the number of values that may be greater than they say: the
	// events came late, and values were met again after them.
	Uncertain int
}

// Replay is one pass over a file.
type Replay struct {
	Registry *features.Registry
	Stream   *record.Stream
	Columns  []Column
	State    State
	// Progress, if there is one, is called after each event.
	Progress func(Summary)

	keys  [][]string // different keys of features, each sorted
	keyOf []int      // by column
	own   []bool     // by column: a feature that is asked about the event's own value
	keep  int64      // the least that a feature keeps, in milliseconds
	now   int64      // the greatest time of an event

	summary  Summary
	entities []string // by keys
	lacks    []bool   // by keys: the event has no such entity
	reading  query.Reading
	cells    []Cell
	text     []byte
}

// Run replays the source and writes a row for each event, in the order of the
// file, to a writer of the same columns. It closes the writer once all is
// written. Errors about an event are a *LineError.
func (r *Replay) Run(ctx context.Context, source Source, w Writer) (Summary, error) {
	r.plan()
	mapper := r.Registry.NewJSONMapper(r.Stream)
	batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	// A record without a time of its own is as old as its event: none is late.
	record := record.Record{Partition: state.Partition{Topic: r.Stream.Topic}, Timestamp: -1}
	for ; ; record.Offset++ {
		if err := ctx.Err(); err != nil {
			return r.summary, err
		}
		value, err := source.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return r.summary, err
		}
		record.Value = value
		batch.Reset()
		outcome, err := mapper.Map(&record, 0, batch)
		if err != nil {
			return r.summary, source.At(err)
		}
		if len(outcome.Events) == 0 {
			r.summary.Passed++
			continue
		}
		if err := r.event(ctx, &outcome.Events[0], batch); err != nil {
			return r.summary, source.At(err)
		}
		err = w.Write(outcome.Events[0].ID, r.cells)
		if _, about := errors.AsType[*CellError](err); about {
			err = source.At(err)
		}
		if err != nil {
			return r.summary, err
		}
		r.summary.Events++
		if r.Progress != nil {
			r.Progress(r.summary)
		}
	}
	return r.summary, w.Close()
}

// plan gathers the features by their keys.
func (r *Replay) plan() {
	r.keep, r.now = math.MaxInt64, math.MinInt64
	r.keyOf, r.own = make([]int, len(r.Columns)), make([]bool, len(r.Columns))
	for i, c := range r.Columns {
		if c.feature == nil {
			continue
		}
		keys := slices.Sorted(slices.Values(c.feature.By))
		at := slices.IndexFunc(r.keys, func(k []string) bool { return slices.Equal(k, keys) })
		if at < 0 {
			at = len(r.keys)
			r.keys = append(r.keys, keys)
		}
		r.keyOf[i], r.own[i] = at, c.feature.Membership() == aggregate.MembersNeeded
		if c.feature.Forgets() {
			r.keep = min(r.keep, c.feature.Keep.Milliseconds())
		}
	}
	r.entities, r.lacks = make([]string, len(r.keys)), make([]bool, len(r.keys))
}

// event applies an event and makes the cells of its row.
func (r *Replay) event(ctx context.Context, e *record.Event, batch *state.Batch) error {
	if e.ID == nil {
		return fmt.Errorf("stream %s: %s: the event has no id", r.Stream.Name, IDColumn(r.Stream))
	}
	r.now = max(r.now, e.Time)
	if r.now-e.Time > r.keep {
		return fmt.Errorf("the event is %s older than one before it, and some feature keeps its past for %s only: sort the file by time, or raise keep",
			time.Duration(r.now-e.Time)*time.Millisecond, time.Duration(r.keep)*time.Millisecond)
	}
	for i, keys := range r.keys {
		text, ok := e.Entity(r.text[:0], keys)
		r.text, r.entities[i], r.lacks[i] = text, string(text), !ok
	}
	r.cells = r.cells[:0]
	for _, c := range r.Columns {
		var cell Cell
		if c.feature == nil {
			cell.Value = e.Values[c.at]
		}
		r.cells = append(r.cells, cell)
	}
	if err := r.answer(ctx, e, true); err != nil {
		return err
	}
	batch.Now = r.now
	if err := r.State.Apply(ctx, batch); err != nil {
		return err
	}
	return r.answer(ctx, e, false)
}

// answer fills in cells of the event's row: before it is applied those of
// features that are asked about its own value, and then those of the others.
func (r *Replay) answer(ctx context.Context, e *record.Event, before bool) error {
	asked := func(i int) bool {
		f := r.Columns[i].feature
		return f != nil && r.own[i] == before && !r.lacks[r.keyOf[i]] && !(before && f.Own(e).IsNull())
	}
	r.reading.Reset(r.now)
	for i, c := range r.Columns {
		if !asked(i) {
			continue
		}
		f := c.feature
		if before {
			f = f.AskedAbout([]value.Value{f.Own(e)})
		}
		r.reading.Want(f, r.entities[r.keyOf[i]], e.Time)
	}
	if err := r.reading.Read(ctx, r.State); err != nil {
		return err
	}
	for i := range r.Columns {
		if !asked(i) {
			continue
		}
		var a query.Answer
		r.reading.Next(&a)
		if a.Err != nil {
			return a.Err // a defect: nobody else writes into memory
		}
		r.cells[i] = Cell{Value: a.Value, Items: a.Items}
		switch {
		case before:
			r.cells[i] = Cell{Value: a.Items[0].Value}
		case r.Columns[i].uncertain:
			r.cells[i] = Cell{Value: value.Value{Type: value.Int, Num: a.Uncertain}}
			continue
		}
		if a.Uncertain > 0 {
			r.summary.Uncertain++
		}
		if a.Capped {
			r.summary.Capped++
		}
	}
	return nil
}
