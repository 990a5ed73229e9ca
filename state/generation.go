package state

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Existing state cannot be filled, because it is unknown which events are in it. If definitions
// need more of a series than it has, a new generation of it is filled beside the old one, which
// serves what it can until then. See docs/definition-changes.md, "How new features are filled".

// GenerationID is the ID of a generation of a series; number 0 is the first generation.
func GenerationID(series string, number int) string {
	if number == 0 {
		return series
	}
	return hashed(fmt.Sprintf("generation 1\n%s %d\n", series, number), SeriesIDLength)
}

func hashed(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:length]
}

// GenerationsOf are the numbers of the generations of a series that the plan keeps, ascending.
func (p *Plan) GenerationsOf(series string) []int {
	if numbers, known := p.Generations[series]; known {
		return numbers
	}
	return first
}

var first = []int{0}

// Definitions is the version of the plan made by the definitions alone, whatever generations it
// keeps.
func (p *Plan) Definitions() string {
	version, _, _ := strings.Cut(p.Version, ".")
	return version
}

// keyIn is the key of the same column in another series.
func keyIn(series, key string) string { return series + key[len(seriesOf(key)):] }

// Serving is a plan of definitions with the generations that can be read: those kept by the plans
// that are now applied.
func (h *History) Serving(p *Plan) *Plan {
	kept, version := map[string][]int{}, p.Version
	for _, m := range h.PlanEpochs {
		if plan := h.Plans[m.Version]; plan != nil && m.Last == MaxTime {
			if plan.Definitions() == p.Version {
				version = plan.Version
			}
			for series, numbers := range plan.Generations {
				kept[series] = append(kept[series], numbers...)
			}
		}
	}
	if len(kept) == 0 {
		return p
	}
	serving := &Plan{Version: version, Retained: p.Retained, Topics: p.Topics, Generations: map[string][]int{}}
	for series, numbers := range kept {
		// Another plan may keep the first generation, and not list it.
		numbers = append(numbers, 0)
		slices.Sort(numbers)
		serving.Generations[series] = slices.Compact(numbers)
	}
	return serving
}

// Best is the generation of a series that is most complete for the retained columns; the last one
// among equals.
func (h *History) Best(series string, numbers []int, retained []Retained) (best int) {
	least := MaxTime
	for i, n := range numbers {
		since := MinTime
		if h != nil {
			since = h.CompleteSince(retainedIn(GenerationID(series, n), retained))
		}
		if i == 0 || since <= least {
			best, least = n, since
		}
	}
	return best
}

// retainedIn are the same columns in another generation.
func retainedIn(series string, retained []Retained) []Retained {
	list := slices.Clone(retained)
	for i := range list {
		list[i].Key = keyIn(series, list[i].Key)
	}
	return list
}

// Known is what a namespace knows: all registered plans and fills, by version.
type Known struct {
	Plans   map[string]*Plan
	Fills   map[string]*Fill
	History *History
	Now     int64 // the newest record's timestamp, in ms
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
	bound := &Plan{Retained: map[string]Retention{}, Topics: map[string]string{}, Generations: map[string][]int{}}
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
	wanted := map[string]Retention{}
	for key, kept := range p.Retained {
		if seriesOf(key) == series {
			wanted[key] = kept
		}
	}
	target, ready := k.target(p, series, wanted)
	keep := func(key string, number int, kept Retention) {
		in := keyIn(GenerationID(series, number), key)
		bound.Retained[in], bound.Topics[in] = kept, p.Topics[key]
	}
	numbers := []int{target}
	for key, kept := range wanted {
		keep(key, target, kept)
	}
	for number, kept := range k.candidates(p, series, wanted) {
		if number == target || ready == now && k.replaces(p, series, target, number, kept) {
			continue
		}
		numbers = append(numbers, number)
		for key, kept := range kept {
			keep(key, number, kept)
		}
	}
	if len(numbers) > 1 || target != 0 {
		slices.Sort(numbers)
		bound.Generations[series] = numbers
	}
}

// target is the generation that has everything wanted, or will: of those that have it the one that
// reaches back furthest, else of those that will, else a new one. Of equals it is the last.
func (k *Known) target(p *Plan, series string, wanted map[string]Retention) (number int, ready readiness) {
	next, furthest := 0, MaxTime
	for _, n := range k.numbers(series) {
		next = n + 1
		all, since := now, k.since(p, series, n, wanted)
		for key, kept := range wanted {
			all = min(all, k.ready(p.Topics[key], keyIn(GenerationID(series, n), key), kept))
		}
		if all != never && (all > ready || all == ready && since <= furthest) {
			number, ready, furthest = n, all, since
		}
	}
	if ready != never {
		return number, ready
	}
	for k.taken(p, GenerationID(series, next)) {
		next++
	}
	return next, never
}

// since is the event time, in ms, since which a generation of a series has all events of columns.
func (k *Known) since(p *Plan, series string, number int, columns map[string]Retention) int64 {
	since := MinTime
	for key, kept := range columns {
		since = max(since, k.History.completeSince(&Retained{Key: keyIn(GenerationID(series, number), key), Topic: p.Topics[key], Retention: kept}))
	}
	return since
}

// replaces says whether a filled generation has all that can be asked of what another one keeps, or
// as much of it.
func (k *Known) replaces(p *Plan, series string, filled, other int, kept map[string]Retention) bool {
	for key, r := range kept {
		column := map[string]Retention{key: r}
		if is := k.since(p, series, filled, column); is > k.since(p, series, other, column) && (r.Keep == 0 || is > k.Now-r.Keep) {
			return false
		}
	}
	return true
}

// numbers are the generations of a series that any plan has kept, ascending.
func (k *Known) numbers(series string) (numbers []int) {
	for _, plan := range k.Plans {
		for _, n := range plan.GenerationsOf(series) {
			if plan.keeps(GenerationID(series, n)) {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
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
func (k *Known) candidates(p *Plan, series string, wanted map[string]Retention) map[int]map[string]Retention {
	candidates := map[int]map[string]Retention{}
	for _, m := range k.History.PlanEpochs {
		plan := k.Plans[m.Version]
		if m.Last != MaxTime || plan == nil {
			continue
		}
		for _, n := range plan.GenerationsOf(series) {
			for key, want := range wanted {
				in := keyIn(GenerationID(series, n), key)
				kept, known := plan.Retained[in]
				if kept = kept.least(want); !known || k.ready(p.Topics[key], in, kept) == never {
					continue
				}
				if candidates[n] == nil {
					candidates[n] = map[string]Retention{}
				}
				if other, twice := candidates[n][key]; twice {
					kept = kept.least(other)
				}
				candidates[n][key] = kept
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

// ready says whether a column has all records, or will once it is filled.
func (k *Known) ready(topic, key string, wanted Retention) readiness {
	all := now
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
		case m.Last != MaxTime && wanted.Keep > 0 && m.Last < k.Now-2*wanted.Keep-MaxAhead.Milliseconds():
			// What that plan did not record is no longer asked about: no tile is wider than what is
			// kept.
		case known:
			return never
		default:
			all = min(all, k.filled(topic, key))
		}
	}
	return all
}

// filled says whether the records that plans without the column skipped are filled.
func (k *Known) filled(topic, key string) readiness {
	if f := k.History.fillOf(&Retained{Key: key, Topic: topic}); f != nil {
		switch {
		case f.Broken:
			return never
		case f.Whole:
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
