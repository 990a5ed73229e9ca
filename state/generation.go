package state

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Existing state cannot be filled, because it is unknown which events are in it. If definitions
// need more of a series than it has, a new generation of it is filled beside the old one, which
// serves what it can until then. See docs/definition-changes.md, "How new features are filled".

func hashed(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:length]
}

// GenerationsOf are the generations of a series that the plan keeps, ascending.
func (p *Plan) GenerationsOf(series string) []Generation {
	if generations, known := p.Generations[series]; known {
		return generations
	}
	return first
}

var first = []Generation{{}}

// Definitions is the version of the plan made by the definitions alone, whatever generations it
// keeps.
func (p *Plan) Definitions() string {
	version, _, _ := strings.Cut(p.Version, ".")
	return version
}

// AsDefined returns a function from the key of a column to that of the same column in the series as
// defined.
func (p *Plan) AsDefined() func(key string) string {
	defined := map[string]string{}
	for series, generations := range p.Generations {
		for _, g := range generations {
			defined[GenerationID(series, g)] = series
		}
	}
	return func(key string) string {
		if series, is := defined[seriesOf(key)]; is {
			return keyIn(series, key)
		}
		return key
	}
}

// keyIn is the key of the same column in another series.
func keyIn(series, key string) string { return series + key[len(seriesOf(key)):] }

// Serving is a plan of definitions with the generations that can be read: those kept by the plans
// that are now applied.
func (h *History) Serving(p *Plan) *Plan {
	kept, cuts, version := map[string][]Generation{}, map[string]Cut{}, p.Version
	for _, m := range h.PlanEpochs {
		if plan := h.Plans[m.Version]; plan != nil && m.Last == MaxTime {
			if plan.Definitions() == p.Version {
				version = plan.Version
			}
			for series, generations := range plan.Generations {
				kept[series] = append(kept[series], generations...)
			}
			maps.Copy(cuts, plan.Cuts)
		}
	}
	if len(kept) == 0 {
		return p
	}
	serving := &Plan{Version: version, Retained: p.Retained, Topics: p.Topics, Generations: map[string][]Generation{}, Cuts: cuts}
	for series, generations := range kept {
		// Another plan may keep the first generation, and not list it.
		generations = append(generations, Generation{})
		slices.SortFunc(generations, compareGenerations)
		serving.Generations[series] = slices.Compact(generations)
	}
	return serving
}

// Best is the generation of a series that is most complete for the retained columns; the last one
// among equals.
func (h *History) Best(series string, p *Plan, retained []Retained) (best Generation) {
	least := MaxTime
	for i, g := range p.GenerationsOf(series) {
		since := MinTime
		if h != nil {
			since = h.CompleteSince(retainedIn(GenerationID(series, g), p.CutOf(g), retained))
		}
		if i == 0 || since <= least {
			best, least = g, since
		}
	}
	return best
}

// retainedIn are the same columns in another generation.
func retainedIn(series string, cut *Cut, retained []Retained) []Retained {
	list := slices.Clone(retained)
	for i := range list {
		list[i].Key, list[i].Cut = keyIn(series, list[i].Key), cut
	}
	return list
}

// Known is what a namespace knows: all registered plans and fills, by version.
type Known struct {
	Plans    map[string]*Plan
	Fills    map[string]*Fill
	Archives []*Archive
	History  *History
	Now      int64 // the newest record's timestamp, in ms
}

// readiness says whether a generation holds what is needed, or will once it is filled.
type readiness int

const (
	never readiness = iota
	later
	now
)

// Bind adds to a plan, as definitions make it, the generations to keep: for each series one that
// has everything needed, or will once it is filled, and until then also those that have a part of
// it. A filled one may reach back less far than an older one, if the log no longer has the records;
// then both are kept for as long as that matters.
func Bind(p *Plan, k *Known) *Plan {
	bound := &Plan{Retained: map[string]Retention{}, Topics: map[string]string{}, Generations: map[string][]Generation{}, Cuts: map[string]Cut{}}
	for _, series := range p.Series() {
		k.bind(bound, p, series)
	}
	if len(bound.Generations) == 0 {
		return p
	}
	text, err := json.Marshal(bound)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	bound.Version = p.Version + "." + hashed(string(text), 6)
	return bound
}

// bind adds the generations of one series.
func (k *Known) bind(bound, p *Plan, series string) {
	w := wanted{series: series, topics: p.Topics, columns: map[string]Retention{}}
	for key, kept := range p.Retained {
		if seriesOf(key) == series {
			w.columns[key] = kept
		}
	}
	target, ready := k.target(p, &w)
	keep := func(key string, g Generation, kept Retention) {
		in := keyIn(GenerationID(series, g), key)
		bound.Retained[in], bound.Topics[in] = kept, p.Topics[key]
		if g.Cut != "" {
			bound.Cuts[g.Cut] = *k.cut(g.Cut)
		}
	}
	generations := []Generation{target}
	for key, kept := range w.columns {
		keep(key, target, kept)
	}
	for g, kept := range k.candidates(&w) {
		if g == target || ready == now && k.replaces(&w, target, g, kept) {
			continue
		}
		generations = append(generations, g)
		for key, kept := range kept {
			keep(key, g, kept)
		}
	}
	if len(generations) > 1 || target != (Generation{}) {
		slices.SortFunc(generations, compareGenerations)
		bound.Generations[series] = generations
	}
}

// wanted is what definitions need of a series.
type wanted struct {
	series  string
	columns map[string]Retention
	topics  map[string]string // by column
}

// target is the generation that has everything wanted, or will: of those that have it the one that
// reaches back furthest, else of those that will, else a new one. Of equals it is the last.
func (k *Known) target(p *Plan, w *wanted) (g Generation, ready readiness) {
	next, furthest := Generation{}, MaxTime
	cut := k.reached(w)
	if cut != nil {
		next.Cut = cut.ID()
	}
	for _, known := range k.generations(w.series) {
		next.Number = max(next.Number, known.Number+1)
		if cut != nil && known.Cut != next.Cut {
			continue // it lacks the files
		}
		all, since := now, k.since(w, known, w.columns)
		for key, kept := range w.columns {
			all = min(all, k.ready(w.topics[key], keyIn(GenerationID(w.series, known), key), kept, k.cut(known.Cut)))
		}
		if all != never && (all > ready || all == ready && since <= furthest) {
			g, ready, furthest = known, all, since
		}
	}
	if ready != never {
		return g, ready
	}
	for k.taken(p, GenerationID(w.series, next)) {
		next.Number++
	}
	return next, never
}

// since is the event time, in ms, since which a generation has all events of columns.
func (k *Known) since(w *wanted, g Generation, columns map[string]Retention) int64 {
	since := MinTime
	for key, kept := range columns {
		since = max(since, k.History.completeSince(&Retained{
			Key: keyIn(GenerationID(w.series, g), key), Topic: w.topics[key], Retention: kept, Cut: k.cut(g.Cut),
		}))
	}
	return since
}

// replaces says whether a filled generation has all that can be asked of what another one keeps, or
// as much of it, or what somebody stated that there is.
func (k *Known) replaces(w *wanted, filled, other Generation, kept map[string]Retention) bool {
	for key, r := range kept {
		column := map[string]Retention{key: r}
		is := k.since(w, filled, column)
		if is > k.since(w, other, column) && (r.Keep == 0 || is > k.Now-r.Keep) && !k.stated(filled, is) {
			return false
		}
	}
	return true
}

// passed says whether what was before a moment can no longer be asked about: no tile is wider than
// what is kept.
func (k *Known) passed(moment int64, wanted Retention) bool {
	return wanted.Keep > 0 && moment < k.Now-2*wanted.Keep-MaxAhead.Milliseconds()
}

// generations are those of a series that any plan has kept, ascending.
func (k *Known) generations(series string) (generations []Generation) {
	for _, plan := range k.Plans {
		for _, g := range plan.GenerationsOf(series) {
			if plan.keeps(GenerationID(series, g)) {
				generations = append(generations, g)
			}
		}
	}
	slices.SortFunc(generations, compareGenerations)
	return slices.Compact(generations)
}

func (p *Plan) keeps(series string) bool {
	for key := range p.Retained {
		if seriesOf(key) == series {
			return true
		}
	}
	return false
}

// taken says whether any series ever kept has the same tag.
func (k *Known) taken(p *Plan, series string) bool {
	tag := (&Series{ID: series}).Tag()
	for _, plan := range append(slices.Collect(maps.Values(k.Plans)), p) {
		for _, id := range plan.Series() {
			// Generation 0 of a new series is the series itself.
			if id != series && (&Series{ID: id}).Tag() == tag {
				return true
			}
		}
	}
	return false
}

// candidates are the generations kept by plans that are now applied, with the wanted columns that
// are there, or will be.
func (k *Known) candidates(w *wanted) map[Generation]map[string]Retention {
	candidates := map[Generation]map[string]Retention{}
	for _, m := range k.History.PlanEpochs {
		plan := k.Plans[m.Version]
		if m.Last != MaxTime || plan == nil {
			continue
		}
		for _, g := range plan.GenerationsOf(w.series) {
			for key, want := range w.columns {
				in := keyIn(GenerationID(w.series, g), key)
				kept, known := plan.Retained[in]
				if kept = kept.least(want); !known || k.ready(w.topics[key], in, kept, plan.CutOf(g)) == never {
					continue
				}
				if candidates[g] == nil {
					candidates[g] = map[string]Retention{}
				}
				if other, twice := candidates[g][key]; twice {
					kept = kept.least(other)
				}
				candidates[g][key] = kept
			}
		}
	}
	return candidates
}

// least is what both retentions keep.
func (k Retention) least(other Retention) Retention {
	least := Retention{Keep: min(k.Keep, other.Keep), Max: min(k.Max, other.Max)}
	if least.Keep == 0 {
		least.Keep = max(k.Keep, other.Keep)
	}
	return least
}

// ready says whether a column, over a cut or nil, has all records, or will once it is filled.
func (k *Known) ready(topic, key string, wanted Retention, cut *Cut) readiness {
	all := now
	if cut != nil && !k.passed(cut.Until, wanted) {
		all = k.filled(topic, key, func(f *FillEpoch) bool { return f.Archived })
	}
	for _, m := range k.History.PlanEpochs {
		if m.Topic != topic || m.Version == Gap {
			continue
		}
		kept, known := Retention{}, false
		if plan := k.Plans[m.Version]; plan != nil {
			kept, known = plan.Retained[key]
		}
		switch {
		case known && kept.covers(wanted):
		case m.Last != MaxTime && k.passed(m.Last, wanted):
			// What that plan did not record is no longer asked about.
		case known:
			return never
		default:
			all = min(all, k.filled(topic, key, func(f *FillEpoch) bool { return f.Whole }))
		}
	}
	return all
}

// filled says whether the records that plans without the column skipped are filled, or those of
// files are: whole says it of a fill.
func (k *Known) filled(topic, key string, whole func(*FillEpoch) bool) readiness {
	if f := k.History.fillOf(&Retained{Key: key, Topic: topic}); f != nil {
		switch {
		case f.Broken:
			return never
		case whole(f):
			return now
		}
		return later
	}
	for _, f := range k.Fills {
		if f.Has(topic, key) {
			return later // not known to any shard yet
		}
	}
	return never
}
