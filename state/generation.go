package state

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// State that exists cannot be filled, because it is unknown which events are in it. If definitions need more of a
// series, a new generation of it is filled beside the old one, which answers what it can meanwhile. See
// docs/definition-changes.md, "How new features are filled".

func hashed(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:length]
}

// GenerationsOf returns the generations of a series that the plan keeps, ascending.
func (p *Plan) GenerationsOf(series string) []Generation {
	if generations, known := p.Generations[series]; known {
		return generations
	}
	return firstOnly
}

var firstOnly = []Generation{{}}

// Definitions returns the version of the plan made by the definitions alone, independent of its generations.
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

// keyIn returns the key of the same column in another series.
func keyIn(series, key string) string { return series + key[len(seriesOf(key)):] }

// Passing reports whether the plan, from Bind, has state that answers only until other state is filled.
func (p *Plan) Passing() bool { return p.passing }

// Alike finds the series of a plan, as defined, that have the same content in tiles of different widths.
type Alike struct {
	tiling    map[string]Tiling
	byContent map[string][]string // sorted
}

// Alike returns the series of the plan that are alike.
func (p *Plan) Alike() *Alike {
	a := &Alike{p.Tiling, map[string][]string{}}
	for _, series := range slices.Sorted(maps.Keys(p.Tiling)) {
		content := p.Tiling[series].Content
		a.byContent[content] = append(a.byContent[content], series)
	}
	return a
}

// any reports whether any series can answer for another one.
func (a *Alike) any() bool {
	for _, series := range a.byContent {
		if len(series) > 1 {
			return true
		}
	}
	return false
}

// StandIns returns the IDs of the other series that can answer for one until it has what it needs: with tiles no wider than a
// length in ms. It is sorted.
func (a *Alike) StandIns(series string, longest int64) (others []string) {
	for _, other := range a.byContent[a.tiling[series].Content] {
		if width := a.tiling[other].Width; other != series && 0 < width && width <= longest {
			others = append(others, other)
		}
	}
	return others
}

// RetainedIn returns the same columns in a generation of a series as defined, which may have other tiles.
func (p *Plan) RetainedIn(series string, g Generation, retained []Retained) []Retained {
	list := slices.Clone(retained)
	for i := range list {
		list[i].Key, list[i].Cut = keyIn(GenerationID(series, g), list[i].Key), p.CutOf(g)
		if t, tiled := p.Tiling[series]; tiled {
			list[i].Tile = t.Width
		}
	}
	return list
}

// readiness states whether a generation holds what is needed, or will once it is filled.
type readiness int

const (
	neverReady readiness = iota
	readyLater
	readyNow
)

// Bind adds the generations to keep to a plan that definitions made. For each series it adds one that has everything
// needed, or will once it is filled. Until then it also keeps those that have a part. If the log no longer has all
// records, a filled generation may reach back less far than an older one; then both are kept until questions no longer
// reach back that far.
//
// The plans may have been lost, or go back in time, apart from the state that they have written: another server has them.
// A generation that only a lost plan kept has state already and must not be filled as a new one, so new generations then
// get numbers that no plan had. That is not needed if the plan itself is all that is missing, as after an operator placed
// a partition under it.
func Bind(p *Plan, k *Known) *Plan {
	bound := k.bindFrom(p, 0)
	lost := slices.DeleteFunc(k.lost(), func(version string) bool { return version == bound.Version })
	if len(lost) > 0 {
		bound = k.bindFrom(p, unusedNumber(lost))
	}
	return bound
}

// bindFrom binds a plan, with numbers of new generations from a first one on.
func (k *Known) bindFrom(p *Plan, number int) *Plan {
	bound := &Plan{
		Retained: map[string]Retention{}, Topics: map[string][]string{}, Tiling: map[string]Tiling{},
		Generations: map[string][]Generation{}, Cuts: map[string]Cut{},
	}
	maps.Copy(bound.Tiling, p.Tiling)
	all := &Plan{Tiling: map[string]Tiling{}}
	for _, plan := range k.Plans {
		maps.Copy(all.Tiling, plan.Tiling)
	}
	maps.Copy(all.Tiling, p.Tiling)
	alike := all.Alike()
	for _, series := range p.Series() {
		k.bind(bound, p, series, number, alike)
	}
	for series, generations := range bound.Generations {
		slices.SortFunc(generations, compareGenerations)
		generations = slices.Compact(generations)
		if bound.Generations[series] = generations; len(generations) == 1 && generations[0] == (Generation{}) && p.keeps(series) {
			delete(bound.Generations, series) // as plans say by not listing it
		}
	}
	if len(bound.Generations) == 0 && maps.Equal(bound.Retained, p.Retained) {
		if !bound.passing {
			return p
		}
		same := *p
		same.passing = true
		return &same
	}
	text, err := json.Marshal(bound)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	bound.Version = p.Version + "." + hashed(string(text), 6)
	return bound
}

// bind adds the generations of one series, new ones with numbers from a first one on, and those of series that stand in for it.
func (k *Known) bind(bound, p *Plan, series string, number int, alike *Alike) {
	w, longest := wanted{series: series, topics: p.Topics, columns: map[string]Retention{}, number: number}, MaxTime
	for key, kept := range p.Retained {
		if seriesOf(key) == series {
			w.columns[key] = kept
			if kept.Keep > 0 {
				longest = min(longest, kept.Keep)
			}
		}
	}
	w.standIns = alike.StandIns(series, longest)
	target, ready := k.target(p, &w)
	keep := func(g stored, columns map[string]Retention) {
		bound.Generations[g.series] = append(bound.Generations[g.series], g.Generation)
		if g.series != series {
			bound.Tiling[g.series] = alike.tiling[g.series]
		}
		for key, kept := range columns {
			in := keyIn(g.id(), key)
			if g.series != series {
				kept.Keep = k.standsFor(in, kept.Keep, alike.tiling[g.series].Width)
			}
			if other, twice := bound.Retained[in]; twice {
				kept = kept.and(other)
			}
			bound.Retained[in], bound.Topics[in] = kept, p.Topics[key]
		}
		if g.Cut != "" {
			bound.Cuts[g.Cut] = *k.cut(g.Cut)
		}
	}
	of := stored{series, target}
	keep(of, w.columns)
	for g, columns := range k.candidates(&w) {
		if g != of && (ready != readyNow || !k.replaces(&w, of, g, columns)) {
			keep(g, columns)
			bound.passing = true
		}
	}
}

// stored is a generation of a series, which is what has state.
type stored struct {
	series string // as defined
	Generation
}

func (s stored) id() string { return GenerationID(s.series, s.Generation) }

// standsFor returns for how long a column is kept, in ms, while it stands in for one that is wanted for a time: not with more
// tiles than any window has, but for those that it has already.
func (k *Known) standsFor(column string, wanted, width int64) int64 {
	most := MaxTiles * width
	for _, plan := range k.Plans {
		most = max(most, plan.Retained[column].Keep)
	}
	if wanted == 0 {
		return most
	}
	return min(wanted, most)
}

// wanted lists what definitions need of a series.
type wanted struct {
	series  string
	columns map[string]Retention
	topics  map[string][]string // by column
	number  int                 // the least one of a new generation
	// standIns are the series that can stand in for it, see Alike.
	standIns []string
}

// ofSeveralTopics reports whether a cut, which divides the events of one topic, would leave out events of others.
func (w *wanted) ofSeveralTopics() bool {
	for key := range w.columns {
		if len(w.topics[key]) > 1 {
			return true
		}
	}
	return false
}

// target returns the generation that has everything wanted, or will. Of those that have it, it is the one that reaches
// back furthest; otherwise one that will have it; otherwise a new one. Among equals it is the last.
func (k *Known) target(p *Plan, w *wanted) (g Generation, ready readiness) {
	next, furthest := Generation{}, MaxTime
	cut := k.reached(w)
	if cut != nil {
		next.Cut = cut.ID()
	}
	for _, known := range k.generations(w.series) {
		next.Number = max(next.Number, known.Number+1+w.number)
		if known.Cut != next.Cut && (cut != nil || w.ofSeveralTopics()) {
			continue // it lacks the files, or the events of other topics that the cut would leave out
		}
		all, since := readyNow, k.since(w, stored{w.series, known}, w.columns)
		for _, column := range k.in(w, stored{w.series, known}, w.columns) {
			all = min(all, k.ready(&column))
		}
		if all != neverReady && (all > ready || all == ready && since <= furthest) {
			g, ready, furthest = known, all, since
		}
	}
	if ready != neverReady {
		return g, ready
	}
	if len(k.Plans) > 0 || cut != nil { // otherwise it is not filled: the first plan reads the log, or goes on with it
		next.Number = max(next.Number, w.number)
	}
	for k.taken(p, GenerationID(w.series, next)) {
		next.Number++
	}
	return next, neverReady
}

// since returns the event time, in ms, since which a generation has events of columns; see coverage.
func (k *Known) since(w *wanted, g stored, columns map[string]Retention) int64 {
	since := MinTime
	for _, column := range k.in(w, g, columns) {
		since = max(since, k.History.byRecords().coverage(&column).since)
	}
	return since
}

// in returns columns in a generation, as far as each of their topics feeds them.
func (k *Known) in(w *wanted, g stored, columns map[string]Retention) (list []Retained) {
	for key, kept := range columns {
		for _, topic := range w.topics[key] {
			list = append(list, Retained{Key: keyIn(g.id(), key), Topic: topic, Retention: kept, Cut: k.cut(g.Cut)})
		}
	}
	return list
}

// replaces reports whether a filled generation has all that can be asked of what another one keeps, or as much as the
// other one has, or all events, as an operator stated.
func (k *Known) replaces(w *wanted, filled, other stored, kept map[string]Retention) bool {
	for key, r := range kept {
		column := map[string]Retention{key: r}
		is := k.since(w, filled, column)
		if is > k.since(w, other, column) && (r.Keep == 0 || is > k.Now-r.Keep) && !k.stated(filled.Generation, is) {
			return false
		}
	}
	return true
}

// passed reports whether questions can no longer reach back to a moment. No tile is wider than what is kept.
func (k *Known) passed(moment int64, wanted Retention) bool {
	return wanted.Keep > 0 && moment < k.Now-2*wanted.Keep-MaxAhead.Milliseconds()
}

// generations returns the generations of a series that any plan has kept, ascending.
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

// taken reports whether any series that was ever kept has the same tag.
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

// candidates returns the generations to keep until a target has everything, with the wanted columns that they have: those of
// the plans that are now applied, and those of plans that were applied lately if they have more of a column. They are kept for
// as long as is wanted now.
func (k *Known) candidates(w *wanted) map[stored]map[string]Retention {
	candidates := map[stored]map[string]Retention{}
	history, least := k.History.byRecords(), map[string]int64{} // since when a candidate has each column
	var all []stored
	for _, series := range append(slices.Clip(w.standIns), w.series) {
		for _, g := range k.generations(series) {
			all = append(all, stored{series, g})
		}
	}
	consider := func(when keptWhen, take func(g stored, has map[string]int64)) {
		for _, g := range all {
			has := map[string]int64{}
			for key, want := range w.columns {
				kept, since := keptNever, MinTime
				for _, column := range k.in(w, g, map[string]Retention{key: want}) {
					if k.broken(&column) {
						kept = keptNever
						break
					}
					kept = max(kept, k.kept(&column))
					since = max(since, history.askedSince([]Retained{column}), history.coverageFrom(&column, k.Now).since)
				}
				if kept == when {
					has[key] = since
				}
			}
			if len(has) > 0 {
				take(g, has)
			}
		}
	}
	add := func(g stored, has map[string]int64) {
		candidates[g] = map[string]Retention{}
		for key, since := range has {
			candidates[g][key] = w.columns[key]
			if before, known := least[key]; !known || since < before {
				least[key] = since
			}
		}
	}
	consider(keptNow, add)
	consider(keptLately, func(g stored, has map[string]int64) {
		for key, since := range has {
			if before, known := least[key]; candidates[g] == nil && (!known || since < before) {
				add(g, has) // all of it: a part would be another fill
			}
		}
	})
	return candidates
}

// keptWhen says when plans last kept a column.
type keptWhen int

const (
	keptNever keptWhen = iota // or so long ago that its state may have been dropped
	keptLately
	keptNow
)

// lately is for how long after a plan was applied its state is surely there, in ms: half of the time after which state that no
// plan keeps is dropped.
const lately = 12 * 60 * 60 * 1000

// kept says when plans last kept a column.
func (k *Known) kept(column *Retained) (when keptWhen) {
	for _, e := range k.History.PlanEpochs {
		if e.Topic != column.Topic || k.Plans[e.Version] == nil {
			continue
		}
		if _, kept := k.Plans[e.Version].Retained[column.Key]; !kept {
			continue
		}
		switch {
		case e.Last == MaxTime:
			return keptNow
		case e.Last >= k.Now-lately:
			when = keptLately
		}
	}
	return when
}

// broken reports whether a column's fill was given up, so that events may be in it twice.
func (k *Known) broken(column *Retained) bool {
	f := k.History.fillOf(column)
	return f != nil && f.Broken
}

// ready reports whether a column has all records of its topic, or will once it is filled.
func (k *Known) ready(column *Retained) readiness {
	if k.expired(column) {
		return neverReady
	}
	all := readyNow
	if cut := column.Cut; cut != nil && !k.passed(cut.Until, column.Retention) {
		all = k.filled(column, func(f *FillEpoch) bool { return f.Archived })
	}
	for _, e := range k.History.PlanEpochs {
		if e.Topic != column.Topic || e.Version == Gap {
			continue
		}
		kept, known := Retention{}, false
		if plan := k.Plans[e.Version]; plan != nil {
			kept, known = plan.Retained[column.Key]
		}
		switch {
		case known && kept.covers(column.Retention):
		case e.Last != MaxTime && k.passed(e.Last, column.Retention):
			// Questions no longer reach back to what that plan did not record.
		case known:
			return neverReady
		default:
			all = min(all, k.filled(column, func(f *FillEpoch) bool { return f.Whole }))
		}
	}
	return all
}

// expired reports whether events of a column that can be asked for may have expired early, so that they have to be read again.
func (k *Known) expired(column *Retained) bool {
	fill := k.History.fillOf(column)
	if fill == nil && k.unclaimed(column) {
		return false
	}
	return k.History.unexpired(column, fill) > k.Now-column.Keep
}

// unclaimed reports whether a column has a fill. No shard knows it, if the history does not have it.
func (k *Known) unclaimed(column *Retained) bool {
	for _, f := range k.Fills {
		if f.Has(column.Topic, column.Key) && !k.History.GivenUp(f) {
			return true
		}
	}
	return false
}

// filled reports whether the records are filled that plans without the column skipped, or whether those of files are;
// `whole` reports it for one fill.
func (k *Known) filled(column *Retained, whole func(*FillEpoch) bool) readiness {
	switch f := k.History.fillOf(column); {
	case f == nil && k.unclaimed(column), f != nil && !f.Broken && !whole(f):
		return readyLater
	case f == nil || f.Broken:
		return neverReady
	}
	return readyNow
}
