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

// answers computes the features of a row.
type answers struct {
	columns []Column
	asked   []asking
	keys    [][]string // the distinct key sets, each sorted

	now      int64    // time of the newest event applied, in milliseconds
	entities []string // by keys
	lacks    []bool   // by keys: the row has no such entity
	running  query.Running
	// runBefore says that all running answers are computed before the row's event is applied,
	// because none of their windows leaves it out.
	runBefore bool
	reads     bool // some answers are not running, but read
	reading   query.Reading
	answer    query.Answer // the last one read
	text      []byte

	// Totals over the row's answers.
	found, capped, uncertain, outside, incomplete int
}

// asking is a feature that is asked for each row, and the columns made from its answer.
type asking struct {
	*features.Feature
	first, end int  // of the columns
	keys       int  // index
	own        bool // the row's own value is the member asked about
	before     bool // it is asked before the row's event is applied
	index      int  // index of its running answers; -1 if it is read
	forgets    bool
	keep       int64 // milliseconds
	whole      *query.Completeness
}

// prepare finds what to ask. It fails if a feature cannot be computed as of before its event.
func (a *answers) prepare(columns []Column, excludeCurrent bool) error {
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
			return fmt.Errorf("feature %q leaves the event itself out of some of its windows, and not of others, so there is no value before the event: remove it from --exclude-current", f.Name)
		}
		asked := asking{
			Feature: f, first: i, end: i + 1, keys: at, own: own,
			before: own || excludeCurrent && !all, forgets: f.Forgets(), keep: f.Keep.Milliseconds(), index: -1, whole: query.CompletenessOf(f, nil),
		}
		if index, ok := a.running.Take(f); ok {
			asked.index, a.runBefore = index, asked.before
		} else {
			a.reads = true
		}
		a.asked = append(a.asked, asked)
	}
	a.entities, a.lacks = make([]string, len(a.keys)), make([]bool, len(a.keys))
	return nil
}

// complete sets what is known of the events that are missing.
func (a *answers) complete(h *state.History) {
	for i := range a.asked {
		f := &a.asked[i]
		if f.whole = query.CompletenessOf(f.Feature, h); f.index >= 0 {
			a.running.Complete(f.index, f.whole)
		}
	}
}

// excludes says whether some, and whether all, windows of a feature leave out the event being
// scored.
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
	a.now, a.found, a.capped, a.uncertain, a.outside, a.incomplete = now, 0, 0, 0, 0, 0
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

// fill fills in the answers of a row that are computed before its event is applied, or those
// computed after.
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
			return answer.Err // a defect: nothing else writes to the memory
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

// run moves the windows of the row's entities to its moment.
func (a *answers) run(from State, e *record.Event) error {
	for i := range a.running.Logs {
		series, ok := a.running.Logs[i].Series, false
		if a.text, ok = e.Entity(a.text[:0], series.By); !ok {
			continue
		}
		log, start, beside := from.Log(series, a.text)
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

// read reads what the answers that are not running need.
func (a *answers) read(ctx context.Context, from State, e *record.Event, before bool) error {
	if !a.reads {
		return nil
	}
	a.reading.Reset(a.now)
	for i := range a.asked {
		f := &a.asked[i]
		if f.index >= 0 || f.before != before || a.without(f, e) != "" {
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

// next is the answer of the next feature.
func (a *answers) next(f *asking, e *record.Event) *query.Answer {
	status := a.without(f, e)
	if status == "" && f.index >= 0 {
		return a.running.Answer(f.index)
	}
	a.answer = query.Answer{Status: status, CompleteSince: state.MinTime}
	if status == "" {
		a.reading.NextSince(&a.answer, f.whole)
	}
	return &a.answer
}

func (a *answers) count(answer *query.Answer) {
	switch answer.Status {
	case query.OutsideMaxAge:
		a.outside++
	case query.Incomplete:
		a.incomplete++
		a.found++
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
