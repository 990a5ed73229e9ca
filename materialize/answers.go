package materialize

import (
	"context"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// answers computes the features of rows.
type answers struct {
	columns []Column
	types   []cellType // of the cells of a row
	asked   []asking
	// keys are the distinct key sets of the features and of the logs that they depend on, each sorted.
	keys [][]string
	// about has, by key set, the features that are asked about an entity, as indices in asked; all has all of them.
	about [][]int
	all   []int

	running  query.Running
	logsOver []int // by log of running: index of its keys
	// runBefore means that all running answers are computed before the row's event is applied, because all their
	// windows leave it out.
	runBefore bool
	before    bool  // some features are asked before the row's event is applied
	after     bool  // some are asked after it
	reads     bool  // some answers are read, and not running
	owns      bool  // some features are asked about the row's own values
	maxFuture int64 // of the stream whose events are the rows, in milliseconds; see query.Reading.SetPresent
	reading   query.Reading
	answer    query.Answer // the last one read

	found, capped, uncertain, outside, incomplete int // totals
}

// subject holds the entities that the features of a row are asked about.
type subject struct {
	now, time int64         // of the newest event applied, and of the row, in milliseconds
	entities  [][]byte      // texts of the row's entities, by keys
	lacks     []bool        // by keys: the row has no such entity
	event     *record.Event // may be nil unless some feature is asked about the row's own values
	spine     *Spine        // whose row it is; nil if the row is an event
}

// inHand returns the event in hand for a feature; nil if the row has none, or one of another entity.
func (s *subject) inHand(f *asking) *record.Event {
	if s.spine == nil {
		return s.event
	}
	e := s.spine.inHand(f.Feature, s.event)
	if e == nil || !f.MayBeOf(e, string(s.entities[f.keys])) {
		return nil
	}
	return e
}

// asking is a feature that is asked for each row, and the columns made from its answer.
type asking struct {
	*features.Feature
	first, end int  // of the columns
	cell       int  // of the first
	keys       int  // index
	own        bool // the row's own value is the member asked about
	before     bool // it is asked before the row's event is applied
	index      int  // index of its running answers; -1 if it is read
	forgets    bool
	keep       int64 // milliseconds
	whole      *query.Completeness
}

// prepare finds what to ask.
func (a *answers) prepare(columns []Column, excludeCurrent bool) {
	a.columns = columns
	for i := range columns {
		f := columns[i].feature
		switch {
		case f == nil:
			continue
		case columns[i].of != answered:
			a.asked[len(a.asked)-1].end = i + 1
			a.addCell(&columns[i])
			continue
		}
		at := a.keysAt(f.By)
		_, all := excludes(f)
		own := f.Membership() == aggregate.MembersRequired
		asked := asking{
			Feature: f, first: i, end: i + 1, cell: len(a.types), keys: at, own: own,
			before: f.BeforeCurrent() || excludeCurrent && !all, forgets: f.Forgets(), keep: f.Keep.Milliseconds(), index: -1, whole: query.CompletenessOf(f, nil),
		}
		if index, ok := a.running.Take(f); ok {
			asked.index, a.runBefore = index, asked.before
		} else {
			a.reads = true
		}
		a.before, a.after = a.before || asked.before, a.after || !asked.before
		a.addCell(&columns[i])
		a.owns = a.owns || own || f.InHand != nil
		a.about[at], a.all = append(a.about[at], len(a.asked)), append(a.all, len(a.asked))
		a.asked = append(a.asked, asked)
	}
	for i := range a.running.Logs {
		a.logsOver = append(a.logsOver, a.keysAt(a.running.Logs[i].Series.By))
	}
}

func (a *answers) addCell(c *Column) {
	typ, scale, _ := c.typed()
	a.types = append(a.types, cellType{typ, scale})
}

// keysAt finds or adds a set of keys.
func (a *answers) keysAt(keys []string) int {
	at := slices.IndexFunc(a.keys, func(k []string) bool { return slices.Equal(k, keys) })
	if at < 0 {
		at = len(a.keys)
		a.keys, a.about = append(a.keys, keys), append(a.about, nil)
	}
	return at
}

// ofOneEntity reports whether each feature depends on the events of only one entity.
func (a *answers) ofOneEntity() bool {
	return !slices.ContainsFunc(a.asked, func(f asking) bool { return !ofOneEntity(f.Feature, f.By) })
}

func ofOneEntity(f *features.Feature, by []string) bool {
	if _, hops := f.Basis.(*features.MultiHop); hops || !slices.Equal(f.By, by) {
		return false
	}
	return !slices.ContainsFunc(f.Parts(), func(part *features.Feature) bool { return !ofOneEntity(part, by) })
}

// complete sets which events are known to be missing.
func (a *answers) complete(h *state.History) {
	for i := range a.asked {
		f := &a.asked[i]
		if f.whole = query.CompletenessOf(f.Feature, h); f.index >= 0 {
			a.running.Complete(f.index, f.whole)
		}
	}
}

// excludes reports whether some, and whether all, windows of a feature leave out the event being scored. A feature without
// windows leaves out what there is to leave out.
func excludes(f *features.Feature) (some, all bool) {
	parts := f.Parts()
	if len(parts) == 0 {
		if len(f.Series) == 0 {
			return false, true
		}
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

// without returns the status of a feature that cannot be asked for a row; empty if it can.
func (a *answers) without(f *asking, s *subject) query.Status {
	switch {
	case s.lacks[f.keys]:
		return query.NotFound
	case f.forgets && s.time < s.now-f.keep:
		return query.OutsideMaxAge
	case f.own && f.Own(s.event).IsNull():
		return query.NullValue
	default:
		return ""
	}
}

// allKeys stands for the entities of a row by all key sets.
const allKeys = -1

// fill fills in the answers of a row about its entity by a key set, or about all: those that are computed before its
// event is applied, or those that are computed after.
func (a *answers) fill(ctx context.Context, from State, s *subject, keys int, before bool, to *rowCells) error {
	some := a.all
	if keys != allKeys {
		some = a.about[keys]
	}
	if before == a.runBefore {
		if err := a.run(from, s, keys); err != nil {
			return err
		}
	}
	if err := a.read(ctx, from, s, some, before); err != nil {
		return err
	}
	for _, i := range some {
		f := &a.asked[i]
		if f.before != before {
			continue
		}
		answer := a.next(f, s)
		if answer.Err != nil {
			return answer.Err // a defect: only the replay writes to the memory
		}
		if f.own {
			answer.TakeOnly()
		}
		a.count(answer)
		to.keep(f.cell, &answer.Value, answer.Items)
		for c := f.first + 1; c < f.end; c++ {
			about := a.columns[c].about(answer)
			to.keep(f.cell+c-f.first, &about, nil)
		}
	}
	return nil
}

// run moves the windows of the row's entities to its moment.
func (a *answers) run(from State, s *subject, keys int) error {
	for i, over := range a.logsOver {
		if keys != allKeys && keys != over || s.lacks[over] {
			continue
		}
		log, beside := from.Log(a.running.Logs[i].Series, s.entities[over])
		var windows *query.Windows
		if beside != nil {
			if *beside == nil {
				*beside = new(query.Windows)
			}
			windows = (*beside).(*query.Windows)
		}
		if err := a.running.Move(i, windows, log, s.time); err != nil {
			return err
		}
	}
	return nil
}

// read reads the state for the answers that are not running.
func (a *answers) read(ctx context.Context, from State, s *subject, some []int, before bool) error {
	if !a.reads {
		return nil
	}
	a.reading.Reset(s.now)
	a.reading.SetPresent(s.now - a.maxFuture)
	for _, i := range some {
		f := &a.asked[i]
		if f.index >= 0 || f.before != before || a.without(f, s) != "" {
			continue
		}
		feature := f.Feature
		if f.own {
			feature = feature.AskedAbout([]value.Value{f.Own(s.event)})
		}
		a.reading.Want(feature, string(s.entities[f.keys]), s.time)
	}
	return a.reading.Read(ctx, from)
}

// next returns the answer of the next feature.
func (a *answers) next(f *asking, s *subject) *query.Answer {
	status := a.without(f, s)
	if f.InHand != nil && status == "" {
		event := s.inHand(f)
		a.running.SetInHand(event)
		a.reading.SetInHand(event)
	}
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
	case query.NotFound, query.NoEvent:
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
