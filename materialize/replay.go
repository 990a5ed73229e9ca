package materialize

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// State is what a replay keeps state in; it has to be empty.
type State interface {
	Apply(context.Context, *kinds.Batch) error
	Read(context.Context, []kinds.Read) ([]kinds.Slice, error)
}

// Summary says what a replay has done.
type Summary struct {
	Events int // written, a row each
	Passed int // events of the file that the stream's match did not take
	// Capped is the number of values that a cap may have made too small: the
	// stream's features have reached their max.
	Capped int
}

// Replay is one pass over a file.
type Replay struct {
	Stream  *features.Stream
	Columns []Column
	State   State
	// Progress, if there is one, is called after each event.
	Progress func(Summary)

	keys  [][]string // different keys of features, each sorted
	keyOf []int      // by column
	keep  int64      // the least that a feature keeps, in milliseconds
	now   int64      // the greatest time of an event

	summary  Summary
	entities []string // by keys
	lacks    []bool   // by keys: the event has no such entity
	reads    []kinds.Read
	row      []string
	text     []byte
}

// Run replays the source and writes a CSV: a line of names, and one for each
// event in the order of the file. Nulls are empty. Errors about an event are a
// *LineError.
func (r *Replay) Run(ctx context.Context, source Source, out io.Writer) (Summary, error) {
	r.plan()
	w := csv.NewWriter(out)
	header := []string{IDColumn(r.Stream)}
	for _, c := range r.Columns {
		header = append(header, c.Name)
	}
	if err := w.Write(header); err != nil {
		return r.summary, err
	}
	only := &features.Registry{Streams: []*features.Stream{r.Stream}}
	mapper := only.NewMapper()
	batch := &kinds.Batch{Sources: make([]kinds.Source, 1)}
	// A record without a time of its own is as old as its event: none is late.
	record := features.Record{Partition: kinds.Partition{Topic: r.Stream.Topic}, Timestamp: -1}
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
		if err := w.Write(r.row); err != nil {
			return r.summary, err
		}
		r.summary.Events++
		if r.Progress != nil {
			r.Progress(r.summary)
		}
	}
	w.Flush()
	return r.summary, w.Error()
}

// plan gathers the features by their keys.
func (r *Replay) plan() {
	r.keep, r.now = math.MaxInt64, math.MinInt64
	r.keyOf = make([]int, len(r.Columns))
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
		r.keyOf[i] = at
		if c.feature.Forgets() {
			r.keep = min(r.keep, c.feature.Keep.Milliseconds())
		}
	}
	r.entities, r.lacks = make([]string, len(r.keys)), make([]bool, len(r.keys))
}

// event applies an event and makes its row.
func (r *Replay) event(ctx context.Context, e *features.Event, batch *kinds.Batch) error {
	if e.ID == nil {
		return fmt.Errorf("stream %s: %s: the event has no id", r.Stream.Name, IDColumn(r.Stream))
	}
	r.now = max(r.now, e.Time)
	if r.now-e.Time > r.keep {
		return fmt.Errorf("the event is %s older than one before it, and some feature keeps its past for %s only: sort the file by time, or raise keep",
			time.Duration(r.now-e.Time)*time.Millisecond, time.Duration(r.keep)*time.Millisecond)
	}
	batch.Now = r.now
	if err := r.State.Apply(ctx, batch); err != nil {
		return err
	}
	if batch.Refused > 0 {
		return errors.New("the event cannot be added: " + batch.Refusal)
	}
	for i, keys := range r.keys {
		text, ok := e.Entity(r.text[:0], keys)
		r.text, r.entities[i], r.lacks[i] = text, string(text), !ok
	}
	r.reads = r.reads[:0]
	for i, c := range r.Columns {
		if c.feature != nil && !r.lacks[r.keyOf[i]] {
			r.reads = c.feature.Reads(r.reads, r.entities[r.keyOf[i]], e.Time)
		}
	}
	slices, err := r.State.Read(ctx, r.reads)
	if err != nil {
		return err
	}
	r.row = append(r.row[:0], string(e.ID))
	for i, c := range r.Columns {
		var v kinds.Value
		switch {
		case c.feature == nil:
			v = e.Values[c.field]
		case !r.lacks[r.keyOf[i]]:
			n := len(c.feature.Series)
			a, err := c.feature.Answer(slices[:n], e.Time, r.now)
			if err != nil {
				return err
			}
			slices = slices[n:]
			v = a.Value
			if a.Capped {
				r.summary.Capped++
			}
		}
		r.text = v.AppendText(r.text[:0])
		r.row = append(r.row, string(r.text))
	}
	return nil
}
