package features

import (
	"slices"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// New features are filled from records that were applied before: these are mapped like any others,
// but only to the new series.

// FillReach is how far back records matter to a fill, in ms before the newest.
type FillReach struct {
	Forever bool // all records matter, from After on
	Reach   int64
	After   int64 // records with earlier timestamps, in ms, do not matter; 0 for none
}

// FillReach computes the reach of a fill in the records of a topic.
func (r *Registry) FillReach(f *state.Fill, topic string) (reach FillReach) {
	for _, stream := range r.Streams {
		for i := range r.writes[stream] {
			for _, s := range r.writes[stream][i].filled(stream, f).all() {
				if stream.In(topic) == nil {
					continue
				}
				reach.Forever = reach.Forever || s.Keep == 0
				// Questions look back by Keep and one tile; so do answers as of a past moment.
				reach.Reach = max(reach.Reach, s.Keep+2*s.Tile+fillMargin)
			}
		}
	}
	if f.Cut != nil && f.Cut.Ends == "" {
		reach.After = f.Cut.Until
	}
	return reach
}

// fillMargin is how much further back than needed records are read, in ms.
const fillMargin = 60_000

// NewFillMapper makes a mapper that maps only to the series of a fill. It evaluates all filters,
// also those of other series, because a record is poison as a whole.
func (r *Registry) NewFillMapper(f *state.Fill) *Mapper {
	m := r.NewMapper()
	r.reduce(m, f)
	return m
}

// NewArchiveMapper makes a mapper of a stream's events in files, given as JSON objects, to the series of a fill. The
// mapper ignores the cut: the caller maps only events before it.
func (r *Registry) NewArchiveMapper(f *state.Fill, stream *record.Stream) *Mapper {
	m := r.NewJSONMapper(stream)
	r.reduce(m, f)
	for _, mapping := range m.mappings {
		for i := range mapping.entities {
			e := &mapping.entities[i]
			for j := range e.series {
				e.series[j].cut = nil
			}
			for j := range e.logs {
				e.logs[j].cut = nil
			}
		}
	}
	return m
}

// reduce makes a mapper map only to the series of a fill.
func (r *Registry) reduce(m *Mapper, f *state.Fill) {
	for stream, mapping := range m.mappings {
		var entities []entityMapping
		for i, e := range mapping.entities {
			kept := r.writes[stream][i].filled(stream, f).all()
			e.ids = slices.DeleteFunc(slices.Clone(e.ids), func(s *state.Series) bool { return !slices.Contains(kept, s) })
			for j := range e.series {
				e.series[j].silent = !slices.Contains(kept, e.series[j].Series)
			}
			for j := range e.logs {
				e.logs[j].silent = !slices.Contains(kept, e.logs[j].series)
			}
			if len(e.ids) == 0 {
				e.series = slices.DeleteFunc(e.series, func(s seriesMapping) bool { return s.silent })
				e.logs = slices.DeleteFunc(e.logs, func(l logMapping) bool { return l.silent })
			}
			if len(kept) > 0 {
				entities = append(entities, e)
			}
		}
		mapping.entities = entities
	}
}

// FillOf makes a fill that covers some series completely and that no store has, so that records can
// be mapped to these series alone.
func (r *Registry) FillOf(some map[*state.Series]bool) *state.Fill {
	f := &state.Fill{Columns: map[string][]string{}}
	for stream, writes := range r.writes {
		add := func(key string) {
			for _, topic := range stream.Topics() {
				f.Columns[topic] = append(f.Columns[topic], key)
			}
		}
		for i := range writes {
			for _, w := range writes[i].series {
				if some[w.series] {
					add(seriesKey(stream, w.series))
				}
			}
			for _, ids := range writes[i].ids {
				if some[ids] {
					add(seriesKey(stream, ids))
				}
			}
			for _, log := range writes[i].logs {
				if some[log.series] {
					log.retained(stream, add)
				}
			}
		}
	}
	for _, keys := range f.Columns {
		slices.Sort(keys)
	}
	return f
}

// FillHas lists the series that a fill covers, wholly or in part.
func (r *Registry) FillHas(f *state.Fill) map[*state.Series]bool {
	has := map[*state.Series]bool{}
	for stream, writes := range r.writes {
		for i := range writes {
			for _, s := range writes[i].filled(stream, f).all() {
				has[s] = true
			}
		}
	}
	return has
}

// filled returns the part of the writes that a fill covers. It covers all columns of a log or none.
func (w *entityWrites) filled(stream *record.Stream, f *state.Fill) entityWrites {
	part, topics := entityWrites{by: w.by}, stream.Topics()
	has := func(key string) bool {
		return slices.ContainsFunc(topics, func(topic string) bool { return f.Has(topic, key) })
	}
	for _, s := range w.series {
		if has(seriesKey(stream, s.series)) {
			part.series = append(part.series, s)
		}
	}
	for _, ids := range w.ids {
		if has(seriesKey(stream, ids)) {
			part.ids = append(part.ids, ids)
		}
	}
	for _, log := range w.logs {
		covered := false
		log.retained(stream, func(key string) { covered = covered || has(key) })
		if covered {
			part.logs = append(part.logs, log)
		}
	}
	return part
}

// all returns the series that are written.
func (w entityWrites) all() (list []*state.Series) {
	for _, s := range w.series {
		list = append(list, s.series)
	}
	list = append(list, w.ids...)
	for _, log := range w.logs {
		list = append(list, log.series)
	}
	return list
}

// FilledBy lists the features that need something of a fill, sorted by name: those that read it, those that lack events and will
// read it once it is filled, or are answered from other tiles until then, and those whose entities remember IDs by it. For a fill
// over a cut these are all that may read it.
func (r *Registry) FilledBy(f *state.Fill) (names []string) {
	defined := func(key string) string { return key }
	if f.Cut != nil || r.history != nil {
		defined = r.plan.AsDefined()
	}
	filled, may := map[string]bool{}, map[string]bool{}
	for _, keys := range f.Columns {
		for _, key := range keys {
			filled[key], may[defined(key)] = true, true
		}
	}
	names = r.needing(func(of *Feature, key string) bool {
		return filled[key] || may[defined(key)] && (f.Cut != nil || r.history.Lacks(of.retained))
	})
	return r.withOwnTiles(append(names, r.remembering(f)...), func(key string) bool { return may[key] })
}

// remembering lists the features whose entities remember IDs by a fill: with these, questions about pending events are answered.
func (r *Registry) remembering(f *state.Fill) (names []string) {
	filled := map[string]bool{} // by stream and group
	for stream, writes := range r.writes {
		for i := range writes {
			for _, ids := range writes[i].filled(stream, f).ids {
				filled[ids.Stream+" "+ids.Group] = true
			}
		}
	}
	for _, of := range r.Features {
		if slices.ContainsFunc(of.Series, func(s *state.Series) bool { return filled[s.Stream+" "+s.Group] }) {
			names = append(names, of.Name)
		}
	}
	return names
}

// withOwnTiles adds to sorted names those of the features that are answered from other tiles in place of a column, by its key as
// defined.
func (r *Registry) withOwnTiles(names []string, column func(key string) bool) []string {
	name := r.plan.AsDefined()
	for i := range r.Features {
		if slices.ContainsFunc(r.ownTiles(i, name), func(own state.Retained) bool { return column(own.Key) }) {
			names = append(names, r.Features[i].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ownTiles returns the columns, as defined, in place of which a feature is answered from series with tiles of another width. name
// is the plan's AsDefined.
func (r *Registry) ownTiles(feature int, name func(key string) string) (own []state.Retained) {
	if r.defined == nil {
		return nil
	}
	reads := map[string]bool{}
	for _, column := range r.Features[feature].retained {
		reads[name(column.Key)] = true
	}
	for _, column := range r.defined[feature].retained {
		if !reads[column.Key] {
			own = append(own, column)
		}
	}
	return own
}

// Unfed lists the features of which some column is in no plan that a history has, sorted by name: processors have not loaded the
// definitions.
func (r *Registry) Unfed(h *state.History) (names []string) {
	name := r.plan.AsDefined()
	for i, f := range r.Features {
		needs := slices.Clone(f.retained)
		for _, own := range r.ownTiles(i, name) {
			series := own.Key[:state.SeriesIDLength]
			kept := r.plan.GenerationsOf(series)
			needs = append(needs, r.plan.RetainedIn(series, kept[len(kept)-1], []state.Retained{own})...)
		}
		if slices.ContainsFunc(needs, func(column state.Retained) bool { return h.CompleteSince([]state.Retained{column}) == state.MaxTime }) {
			names = append(names, f.Name)
		}
	}
	return names
}

// Unfilled lists the features that need columns of series over a cut which none of the fills has, sorted by name.
func (r *Registry) Unfilled(cut state.Cut, fills []*state.Fill) (names []string) {
	over, unfilled, name := map[string]bool{}, map[string]bool{}, r.plan.AsDefined()
	for _, s := range r.Series {
		over[s.ID] = s.Cut != nil && *s.Cut == cut
	}
	for key := range r.plan.Retained {
		has := func(f *state.Fill) bool { return f.Has(cut.Topic, key) }
		if over[key[:state.SeriesIDLength]] && !slices.ContainsFunc(fills, has) {
			unfilled[name(key)] = true
		}
	}
	return r.withOwnTiles(r.needing(func(_ *Feature, key string) bool { return unfilled[name(key)] }), func(key string) bool { return unfilled[key] })
}

// needing lists the features that need a column, by its key.
func (r *Registry) needing(column func(f *Feature, key string) bool) (names []string) {
	for _, f := range r.Features {
		if slices.ContainsFunc(f.retained, func(retained state.Retained) bool { return column(f, retained.Key) }) {
			names = append(names, f.Name)
		}
	}
	return names
}
