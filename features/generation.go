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
	if len(p.Generations) == 0 {
		return r
	}
	g := generations{plan: p, history: h, series: map[*state.Series][]*state.Series{}, features: map[*Feature]*Feature{}}
	over := *r
	over.plan, over.history, over.Series, over.writes = p, h, nil, map[*record.Stream][]entityWrites{}
	for _, s := range r.Series {
		over.Series = append(over.Series, g.of(s)...)
	}
	slices.SortFunc(over.Series, func(a, b *state.Series) int { return cmp.Compare(a.ID, b.ID) })
	for stream, writes := range r.writes {
		for i := range writes {
			over.writes[stream] = append(over.writes[stream], g.writes(&writes[i])...)
		}
	}
	over.Features, over.Services, over.Enrichments = nil, nil, nil
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
	series   map[*state.Series][]*state.Series
	features map[*Feature]*Feature // the copy of each feature
}

// of lists the generations that are kept of a series.
func (g *generations) of(s *state.Series) []*state.Series {
	if kept, made := g.series[s]; made {
		return kept
	}
	var kept []*state.Series
	for _, name := range g.plan.GenerationsOf(s.ID) {
		generation := s
		if name != (state.Generation{}) {
			other := *s
			other.ID, other.Cut = state.GenerationID(s.ID, name), g.plan.CutOf(name)
			generation = &other
		}
		kept = append(kept, generation)
	}
	g.series[s] = kept
	return kept
}

// writes repeats the writes of an event for each generation: all generations of a series receive the same events.
func (g *generations) writes(w *entityWrites) (all []entityWrites) {
	layers := 1
	for _, s := range w.all() {
		layers = max(layers, len(g.of(s)))
	}
	for i := range layers {
		layer := entityWrites{by: w.by}
		for _, write := range w.series {
			if kept := g.of(write.series); i < len(kept) {
				write.series = kept[i]
				layer.series = append(layer.series, write)
			}
		}
		if w.log != nil {
			if kept := g.of(w.log.series); i < len(kept) {
				log := *w.log
				log.series = kept[i]
				layer.log = &log
			}
		}
		if w.ids != nil { // event IDs are remembered once, with any generation
			kept := g.of(w.ids)
			layer.ids = kept[min(i, len(kept)-1)]
		}
		all = append(all, layer)
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
	default:
		made.Series = slices.Clone(f.Series)
		for i, s := range f.Series {
			made.Series[i] = g.best(f, s)
		}
	}
	made.retained = made.Basis.retain(&made)
	return &made
}

// best returns the generation of a series that is the most complete for a feature.
func (g *generations) best(f *Feature, s *state.Series) *state.Series {
	kept := g.of(s)
	retained := slices.DeleteFunc(slices.Clone(f.retained), func(r state.Retained) bool { return r.Key[:len(s.ID)] != s.ID })
	return kept[slices.Index(g.plan.GenerationsOf(s.ID), g.history.Best(s.ID, g.plan, retained))]
}
