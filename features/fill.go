package features

import (
	"slices"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// What new features need is filled with records that were applied before: they are mapped
// as any others, but to the series alone that are new.

// FillReach is how far back records matter to a fill, in ms before the newest, and how far
// after its record an event of theirs may lie.
type FillReach struct {
	Forever bool // all records matter
	Reach   int64
	Future  int64
}

// FillReach is how far back records of a topic matter to a fill.
func (r *Registry) FillReach(f *state.Fill, topic string) (reach FillReach) {
	for _, stream := range r.Streams {
		for i := range r.writes[stream] {
			for _, s := range r.writes[stream][i].filled(stream, f).all() {
				future := stream.MaxFuture.Milliseconds()
				if stream.Topic != topic {
					continue
				}
				reach.Forever = reach.Forever || s.Keep == 0
				reach.Future = max(reach.Future, future)
				// A question looks back by Keep and a tile, and so do answers of the past.
				reach.Reach = max(reach.Reach, s.Keep+2*s.Tile+future+fillMargin)
			}
		}
	}
	return reach
}

// fillMargin is for how much longer than needed records are read, in ms.
const fillMargin = 60_000

// NewFillMapper makes a mapper that maps to the series of a fill alone. All filters are
// evaluated, also those of other series: a record is poison as a whole.
func (r *Registry) NewFillMapper(f *state.Fill) *Mapper {
	m := r.NewMapper()
	for stream, plan := range m.plans {
		var entities []entityPlan
		for i, e := range plan.entities {
			kept := r.writes[stream][i].filled(stream, f).all()
			e.series = slices.DeleteFunc(e.series, func(s seriesPlan) bool { return !slices.Contains(kept, s.Series) })
			if e.log != nil && !slices.Contains(kept, e.log.series) {
				e.log = nil
			}
			if !slices.Contains(kept, e.ids) {
				e.ids = nil
			}
			if len(kept) > 0 {
				entities = append(entities, e)
			}
		}
		plan.entities = entities
	}
	return m
}

// filled is what of the writes a fill has. Of a log it has all columns or none.
func (w *entityWrites) filled(stream *record.Stream, f *state.Fill) entityWrites {
	part := entityWrites{by: w.by}
	for _, s := range w.series {
		if f.Has(stream.Topic, seriesKey(stream, s.series)) {
			part.series = append(part.series, s)
		}
	}
	if w.ids != nil && f.Has(stream.Topic, seriesKey(stream, w.ids)) {
		part.ids = w.ids
	}
	if w.log != nil {
		w.log.retained(stream, func(key string) {
			if f.Has(stream.Topic, key) {
				part.log = w.log
			}
		})
	}
	return part
}

// all are the series that are written.
func (w entityWrites) all() (list []*state.Series) {
	for _, s := range w.series {
		list = append(list, s.series)
	}
	if w.ids != nil {
		list = append(list, w.ids)
	}
	if w.log != nil {
		list = append(list, w.log.series)
	}
	return list
}

// FilledBy lists the features that need something of a fill, by name.
func (r *Registry) FilledBy(f *state.Fill) (names []string) {
	for _, feature := range r.Features {
		if slices.ContainsFunc(feature.retained, func(u state.Retained) bool { return f.Has(u.Topic, u.Key) }) {
			names = append(names, feature.Name)
		}
	}
	return names
}
