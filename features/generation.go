package features

import (
	"cmp"
	"slices"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Serving returns the registry whose features read the generations of their series that are the
// most complete according to a history. Nil means that there is no history.
func (r *Registry) Serving(h *state.History) *Registry {
	if h == nil || r.plan == nil {
		return r
	}
	return r.Keeping(h.Serving(r.plan), h)
}

// Keeping returns the registry over the generations of a plan (see state.Plan): events write all
// generations, and each feature reads those that are the most complete according to a history.
func (r *Registry) Keeping(p *state.Plan, h *state.History) *Registry {
	if p == r.plan {
		return r
	}
	g := generations{
		plan: p, history: h, alike: p.Alike(), keep: map[string]int64{}, defined: map[string]*state.Series{},
		series: map[string][]*state.Series{}, claims: map[string]*state.Series{}, features: map[*Feature]*Feature{},
	}
	for key, kept := range p.Retained {
		g.keep[key[:state.SeriesIDLength]] = kept.Keep // the same for all columns of a series
	}
	over := *r
	over.plan, over.history, over.Series, over.writes = p, h, nil, map[*record.Stream][]entityWrites{}
	for _, s := range r.Series {
		g.defined[s.ID] = s
	}
	for _, s := range r.Series {
		over.Series = append(over.Series, g.written(s)...)
	}
	slices.SortFunc(over.Series, func(a, b *state.Series) int { return cmp.Compare(a.ID, b.ID) })
	keepGroups(over.Series)
	for stream, writes := range r.writes {
		for i := range writes {
			over.writes[stream] = append(over.writes[stream], g.writes(&writes[i]))
		}
	}
	over.Features, over.Services, over.Enrichments, over.defined = nil, nil, nil, r.Features
	for _, f := range r.Features {
		over.Features = append(over.Features, g.feature(f))
	}
	services := map[*Service]*Service{}
	for _, s := range r.Services {
		services[s] = &Service{Name: s.Name}
		for _, f := range s.Features {
			services[s].Features = append(services[s].Features, g.feature(f))
		}
		over.Services = append(over.Services, services[s])
	}
	for _, e := range r.Enrichments {
		over.Enrichments = append(over.Enrichments, &Enrichment{Stream: e.Stream, Service: services[e.Service], Topic: e.Topic, Avro: e.Avro})
	}
	return &over
}

// generations replaces series by the generations that a plan keeps of them.
type generations struct {
	plan     *state.Plan
	history  *state.History
	alike    *state.Alike
	keep     map[string]int64           // for how long the plan keeps a series, by its ID, in ms
	defined  map[string]*state.Series   // by ID
	series   map[string][]*state.Series // the generations of each series as defined, by its ID
	claims   map[string]*state.Series   // the series with which events write others that stand in, by the ID of these
	features map[*Feature]*Feature      // the copy of each feature
}

// of lists the generations that are kept of a series.
func (g *generations) of(s *state.Series) []*state.Series { return g.standIn(s, s.ID) }

// standIn lists the generations that are kept of a series, as defined, that can answer for another one.
func (g *generations) standIn(s *state.Series, id string) []*state.Series {
	if defined := g.defined[id]; defined != nil {
		s = defined
	}
	kept, made := g.series[id]
	if made {
		return kept
	}
	for _, name := range g.plan.GenerationsOf(id) {
		generation := *s
		generation.ID, generation.Cut = state.GenerationID(id, name), g.plan.CutOf(name)
		if id != s.ID {
			generation.Tile = g.plan.Tiling[id].Width
		}
		if keep, says := g.keep[generation.ID]; says {
			generation.Keep = keep
		}
		kept = append(kept, &generation)
	}
	g.series[id] = kept
	return kept
}

// written lists the generations that are written with a series: its own, and those that stand in for it and that no other
// series writes.
func (g *generations) written(s *state.Series) []*state.Series {
	kept := slices.Clip(g.of(s))
	for _, other := range g.alike.StandIns(s.ID, state.MaxTime) {
		if by := g.claims[other]; g.defined[other] == nil && (by == nil || by == s) {
			g.claims[other] = s
			kept = append(kept, g.standIn(s, other)...)
		}
	}
	return kept
}

// writes repeats the writes of an event for each generation: all generations of a series receive the same events. They stay
// those of one entity, so that an event remains one update of it, which its ID tells from a repetition.
func (g *generations) writes(w *entityWrites) entityWrites {
	all := entityWrites{by: w.by}
	kept := make([][]*state.Series, len(w.series))
	layers := 0
	for i, write := range w.series {
		kept[i] = g.written(write.series)
		layers = max(layers, len(kept[i]))
	}
	for layer := range layers { // series that an event changes alike stay beside each other
		for i, write := range w.series {
			if layer < len(kept[i]) {
				write.series = kept[i][layer]
				all.series = append(all.series, write)
			}
		}
	}
	for _, log := range w.logs {
		for _, s := range g.written(log.series) {
			made := *log
			made.series = s
			all.logs = append(all.logs, &made)
		}
	}
	for _, ids := range w.ids {
		all.ids = append(all.ids, g.written(ids)...)
	}
	return all
}

// feature returns a copy of the feature that reads the most complete generations.
func (g *generations) feature(f *Feature) *Feature {
	if made := g.features[f]; made != nil {
		return made
	}
	made := *f
	g.features[f] = &made
	switch basis := f.Basis.(type) {
	case *Derived:
		over := *basis
		over.Of = nil
		made.Series = nil
		for _, part := range basis.Of {
			over.Of = append(over.Of, g.feature(part))
			made.Series = append(made.Series, over.Of[len(over.Of)-1].Series...)
		}
		made.Basis = &over
	case *MultiHop:
		over := *basis
		over.Set, over.Each = g.feature(basis.Set), g.feature(basis.Each)
		made.Series = slices.Concat(over.Set.Series, over.Each.Series)
		made.Basis = &over
	case *OfTable: // it has no series
	default:
		made.Series = g.best(f)
		for _, s := range f.Series {
			for _, generation := range g.plan.GenerationsOf(s.ID) {
				made.filling = append(made.filling, g.plan.RetainedIn(s.ID, generation, retainedOf(f, s))...)
			}
		}
	}
	made.retained = made.Basis.retain(&made)
	return &made
}

// best returns the generations of a feature's series that are the most complete: all in tiles of one width, since the parts of
// an answer are of the same events.
func (g *generations) best(f *Feature) []*state.Series {
	var options [][]*state.Series
	var retained [][]state.Retained
	for _, width := range g.widths(f) {
		var read []*state.Series
		var columns []state.Retained
		for _, s := range f.Series {
			as := s.ID
			if width != s.Tile {
				as = g.inTiles(s, width)
			}
			if as == "" {
				break
			}
			of := retainedOf(f, s)
			best := g.history.Best(as, g.plan, of)
			read = append(read, g.standIn(s, as)[slices.Index(g.plan.GenerationsOf(as), best)])
			columns = append(columns, g.plan.RetainedIn(as, best, of)...)
		}
		if len(read) == len(f.Series) {
			options, retained = append(options, read), append(retained, columns)
		}
	}
	best, own := g.history.Fullest(retained), len(options)-1
	if best != own && !g.history.HasMore(retained[best], retained[own]) {
		best = own
	}
	return options[best]
}

// retainedOf returns what a feature needs of one of its series.
func retainedOf(f *Feature, s *state.Series) []state.Retained {
	return slices.DeleteFunc(slices.Clone(f.retained), func(r state.Retained) bool { return r.Key[:len(s.ID)] != s.ID })
}

// widths lists the widths of tiles, in ms, from which a feature can be answered, by how exactly: that of its definition is the
// last.
func (g *generations) widths(f *Feature) (widths []int64) {
	s := f.Series[0]
	for _, other := range g.alike.StandIns(s.ID, f.widestTile()) {
		widths = append(widths, g.plan.Tiling[other].Width)
	}
	slices.SortFunc(widths, func(a, b int64) int { return cmp.Compare(b, a) })
	return append(widths, s.Tile)
}

// inTiles returns the ID of the series, as defined, that can answer for one in tiles of another width; "" if there is none.
func (g *generations) inTiles(s *state.Series, width int64) string {
	for _, other := range g.alike.StandIns(s.ID, width) {
		if g.plan.Tiling[other].Width == width {
			return other
		}
	}
	return ""
}
