package materialize

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// answers asks the features of a row.
type answers struct {
	columns []Column
	asked   []asking
	keys    [][]string // the different keys, each sorted

	now      int64    // the newest that was applied, in milliseconds
	entities []string // by keys
	lacks    []bool   // by keys: the row has no such entity
	running  query.Running
	// runBefore says that running answers are had before the row's event is applied: all
	// of them, since none of their windows leaves it out.
	runBefore bool
	reads     bool // some answers are read anew
	reading   query.Reading
	answer    query.Answer // one that was read
	text      []byte

	// What is said of the row's answers.
	found, capped, uncertain, outside int
}

// asking is a feature that each row is asked for, and the columns made of its answer.
type asking struct {
	*features.Feature
	first, end int  // of the columns
	keys       int  // index
	own        bool // it is asked about the row's own value
	before     bool // it is asked before the row's event is applied
	place      int  // of its answers while its windows move on; -1 where it is read anew
	forgets    bool
	keep       int64 // milliseconds
}

// plan finds what is to be asked. An error is that a feature cannot be had as of before
// its event.
func (a *answers) plan(columns []Column, excludeCurrent bool) error {
	a.columns = columns
	for i := range columns {
		f := columns[i].feature
		switch {
		case f == nil:
			continue
		case columns[i].of != answered:
			a.asked[len(a.asked)-1].end = i + 1
			continue
		}
		keys := f.By
		at := slices.IndexFunc(a.keys, func(k []string) bool { return slices.Equal(k, keys) })
		if at < 0 {
			at = len(a.keys)
			a.keys = append(a.keys, keys)
		}
		some, all := excludes(f)
		own := f.Membership() == aggregate.MembersNeeded
		if excludeCurrent && some && !all {
			return fmt.Errorf("feature %q leaves the event itself out of some of its windows, and not of others, so there is no value before the event: leave it out of --exclude-current", f.Name)
		}
		asked := asking{
			Feature: f, first: i, end: i + 1, keys: at, own: own,
			before: own || excludeCurrent && !all, forgets: f.Forgets(), keep: f.Keep.Milliseconds(), place: -1,
		}
		if place, ok := a.running.Take(f); ok {
			asked.place, a.runBefore = place, asked.before
		} else {
			a.reads = true
		}
		a.asked = append(a.asked, asked)
	}
	a.entities, a.lacks = make([]string, len(a.keys)), make([]bool, len(a.keys))
	return nil
}

// excludes says whether windows of a feature leave out the event that is asked about:
// some of them, and all.
func excludes(f *features.Feature) (some, all bool) {
	parts := f.Parts()
	if len(parts) == 0 {
		one := f.Window.Exclude != window.ExcludeNothing
		return one, one
	}
	all = true
	for _, part := range parts {
		s, a := excludes(part)
		some, all = some || s, all && a
	}
	return some, all
}

// begin makes the cells of a row that are not answers. The newest moment applied is in
// milliseconds.
func (a *answers) begin(cells []Cell, e *record.Event, now int64) []Cell {
	a.now, a.found, a.capped, a.uncertain, a.outside = now, 0, 0, 0, 0
	for i, keys := range a.keys {
		text, ok := e.Entity(a.text[:0], keys)
		if a.text, a.lacks[i] = text, !ok; a.reads {
			a.entities[i] = string(text)
		}
	}
	cells = cells[:0]
	for i := range a.columns {
		var cell Cell
		switch c := &a.columns[i]; c.of {
		case identity:
			cell.Value = value.Value{Type: value.String, Str: e.ID}
		case ofEvent:
			cell.Value = e.Values[c.at]
		}
		cells = append(cells, cell)
	}
	return cells
}

// without is the status of a feature that cannot be asked for a row; empty if it can.
func (a *answers) without(f *asking, e *record.Event) query.Status {
	switch {
	case a.lacks[f.keys]:
		return query.NotFound
	case f.forgets && e.Time < a.now-f.keep:
		return query.OutsideMaxAge
	case f.own && f.Own(e).IsNull():
		return query.NullValue
	default:
		return ""
	}
}

// fill fills in the answers of a row that are to be had before its event is applied, or
// those behind.
func (a *answers) fill(ctx context.Context, from State, cells []Cell, e *record.Event, before bool) error {
	if before == a.runBefore {
		if err := a.run(from, e); err != nil {
			return err
		}
	}
	if err := a.read(ctx, from, e, before); err != nil {
		return err
	}
	for i := range a.asked {
		f := &a.asked[i]
		if f.before != before {
			continue
		}
		answer := a.next(f, e)
		if answer.Err != nil {
			return answer.Err // a defect: nobody else writes into memory
		}
		if f.own && len(answer.Items) > 0 {
			answer.Value, answer.Items = answer.Items[0].Value, nil
		}
		a.count(answer)
		for c := f.first; c < f.end; c++ {
			cells[c] = a.columns[c].cell(answer)
		}
	}
	return nil
}

// run moves the windows of the row's entities on to its moment.
func (a *answers) run(from State, e *record.Event) error {
	for i := range a.running.Logs {
		series, ok := a.running.Logs[i].Series, false
		if a.text, ok = e.Entity(a.text[:0], series.By); !ok {
			continue
		}
		log, start, beside := from.Follow(series, a.text)
		var windows *query.Windows
		if beside != nil {
			if *beside == nil {
				*beside = new(query.Windows)
			}
			windows = (*beside).(*query.Windows)
		}
		if err := a.running.Move(i, windows, log, start, e.Time); err != nil {
			return err
		}
	}
	return nil
}

// read reads what the answers need that are not running.
func (a *answers) read(ctx context.Context, from State, e *record.Event, before bool) error {
	if !a.reads {
		return nil
	}
	a.reading.Reset(a.now)
	for i := range a.asked {
		f := &a.asked[i]
		if f.place >= 0 || f.before != before || a.without(f, e) != "" {
			continue
		}
		feature := f.Feature
		if f.own {
			feature = feature.AskedAbout([]value.Value{f.Own(e)})
		}
		a.reading.Want(feature, a.entities[f.keys], e.Time)
	}
	return a.reading.Read(ctx, from)
}

// next is the answer of the feature that is asked next.
func (a *answers) next(f *asking, e *record.Event) *query.Answer {
	status := a.without(f, e)
	if status == "" && f.place >= 0 {
		return a.running.Answer(f.place)
	}
	a.answer = query.Answer{Status: status, CompleteSince: state.MinTime}
	if status == "" {
		a.reading.Next(&a.answer)
	}
	return &a.answer
}

func (a *answers) count(answer *query.Answer) {
	switch answer.Status {
	case query.OutsideMaxAge:
		a.outside++
	case query.NotFound:
	default:
		a.found++
	}
	if answer.Capped {
		a.capped++
	}
	if answer.Uncertain > 0 {
		a.uncertain++
	}
}
