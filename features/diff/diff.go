// Package diff compares two sets of definitions: how the meaning of features changes,
// which existing state they keep using, and how their costs change.
package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Kept states how much of its existing state a feature keeps.
type Kept string

// The values of Kept.
const (
	All  Kept = "all"  // all the state it needs exists
	Some Kept = "some" // it needs more of that state: a longer past, or more values
	None Kept = "none" // state it needs was never kept: it starts from nothing
)

// Difference lists what new definitions change.
type Difference struct {
	Streams  []Change  `json:"streams"`
	Features []Feature `json:"features"`
	Services []Change  `json:"services"`
	// Enriched are changes of where the events of a stream are written with features, and how.
	Enriched []Change `json:"enriched"`
	Cost     []Cost   `json:"cost"`
	// Backfill is what filling the new state takes; nil if that was not asked for.
	Backfill *Backfill `json:"backfill,omitempty"`
	// Memory is what the change costs at the current number of entities; nil if that was not asked for.
	Memory *Memory `json:"memory,omitempty"`
}

// Change states what happened to a stream, a service or the enriched events of a stream: added, removed, or changed in
// parts.
type Change struct {
	Name    string   `json:"name"`
	New     bool     `json:"new,omitempty"`
	Gone    bool     `json:"gone,omitempty"`
	Changes []string `json:"changes,omitempty"`
}

// Feature states what happened to a feature. A Difference has no unchanged features.
type Feature struct {
	Change
	State Kept `json:"state,omitempty"` // empty if the feature is removed
	// Needs is how long a past its answers cover at most, in milliseconds; 0 is all of it. Missing state is
	// complete after that time.
	Needs int64 `json:"needs_ms,omitempty"`
	// Has is how long a past its state has, in milliseconds, with Some.
	Has      int64    `json:"has_ms,omitempty"`
	Services []string `json:"services,omitempty"` // that answer with it, before or after

	// Tile, in milliseconds, is the width of the tiles that it is answered from until those of its definition are filled, with
	// Some; 0 if their width stays.
	Tile int64 `json:"tile_ms,omitempty"`

	// fewer means, with Some, that the state has fewer values than the feature needs, and not a shorter past.
	fewer bool
}

// Loses reports whether a service loses by the change: a feature of its answers starts from nothing, or is removed.
func (f *Feature) Loses() bool { return !f.New && len(f.Services) > 0 && (f.Gone || f.State == None) }

// Effect says how the answers of a feature differ for a time, or for good, once definitions change.
type Effect struct {
	Feature  string   `json:"feature"`
	Services []string `json:"services,omitempty"` // that answer with it, before or after
	Loses    bool     `json:"loses"`              // whether these answer less than before for a time
	Effect   string   `json:"effect"`
}

// Effects lists the effects on those who ask, by feature. Features that keep all of their state have none.
func (d *Difference) Effects() []Effect {
	list := []Effect{}
	for i := range d.Features {
		if f := &d.Features[i]; f.State != All {
			list = append(list, Effect{f.Name, f.Services, f.Loses(), f.Effect()})
		}
	}
	return list
}

// Cost is a cost that changes.
type Cost struct {
	What   string `json:"what"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
}

// Loses lists the features whose loss of state affects a service.
func (d *Difference) Loses() (names []string) {
	for i := range d.Features {
		if d.Features[i].Loses() {
			names = append(names, d.Features[i].Name)
		}
	}
	return names
}

// Of computes what the new definitions change.
func Of(before, after *features.Registry) *Difference {
	d := &Difference{}
	d.Streams = compare(before.Streams, after.Streams, func(s *record.Stream) string { return s.Name }, streamChanges)
	d.Services = compare(before.Services, after.Services, func(s *features.Service) string { return s.Name }, serviceChanges)
	d.Enriched = compare(before.Enrichments, after.Enrichments, func(e *features.Enrichment) string { return e.Stream.Name }, enrichmentChanges)
	m := meanings{before: before, after: after, streams: d.Streams, known: map[string][]string{}}
	changed := compare(before.Features, after.Features, func(f *features.Feature) string { return f.Name }, func(_, f *features.Feature) []string { return m.of(f.Name) })
	for i, f := range served(before, after).Features {
		at, is := slices.BinarySearchFunc(changed, f.Name, func(c Change, name string) int { return cmp.Compare(c.Name, name) })
		kept, has, fewer, tile := keeps(before.Plan(), after.Features[i], f)
		if !is && kept == All {
			continue
		}
		change := Change{Name: f.Name}
		if is {
			change = changed[at]
		}
		if mistakesMore(before, f) {
			change.Changes = append(change.Changes, "the state has values whose rate of false positives is greater than fp allows now")
		}
		d.Features = append(d.Features, Feature{Change: change, State: kept, Needs: needs(f), Has: has, Tile: tile, fewer: fewer})
	}
	for _, c := range changed {
		if c.Gone {
			d.Features = append(d.Features, Feature{Change: c})
		}
	}
	slices.SortFunc(d.Features, func(a, b Feature) int { return cmp.Compare(a.Name, b.Name) })
	services := servicesOf(before, after)
	for i := range d.Features {
		d.Features[i].Services = services[d.Features[i].Name]
	}
	d.Cost = costs(cost.Explain(before), cost.Explain(after))
	return d
}

// compare lists the names that are added, removed and changed, sorted.
func compare[T any](before, after []T, name func(T) string, changes func(before, after T) []string) (all []Change) {
	was, is := map[string]T{}, map[string]bool{}
	for _, b := range before {
		was[name(b)] = b
	}
	for _, a := range after {
		is[name(a)] = true
		if b, had := was[name(a)]; !had {
			all = append(all, Change{Name: name(a), New: true})
		} else if c := changes(b, a); len(c) > 0 {
			all = append(all, Change{Name: name(a), Changes: c})
		}
	}
	for _, b := range before {
		if !is[name(b)] {
			all = append(all, Change{Name: name(b), Gone: true})
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// served returns the new definitions as they are answered right after the change, before anything is filled: from the
// series that stand in for new ones, where there are any.
func served(before, after *features.Registry) *features.Registry {
	const someday = 1 << 50 // any moment later than all windows are long, in ms
	plan := before.Plan()
	h := &state.History{Plans: map[string]*state.Plan{plan.Version: plan}, Newest: someday, Now: someday}
	for _, topic := range before.Topics() {
		h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: topic, Version: plan.Version, Last: state.MaxTime})
	}
	return after.Serving(h)
}

// keeps returns how much of the state under a plan a feature keeps, as it is served, and, if that is some of it, how long a
// past that has, and the width of its tiles if that is to change; see Feature.fewer.
func keeps(plan *state.Plan, defined, f *features.Feature) (kept Kept, has int64, fewer bool, tile int64) {
	covers := func(key string, wanted state.Retention) bool {
		return plan.Covers(&state.Plan{Retained: map[string]state.Retention{key: wanted}})
	}
	kept = All
	standsIn := map[string]bool{}
	for i, s := range f.Series {
		if s.Tile != defined.Series[i].Tile {
			kept, tile, standsIn[s.ID] = Some, s.Tile, true
		}
	}
	for _, r := range f.Retained() {
		there, known := plan.Retained[r.Key]
		whole := covers(r.Key, r.Retention)
		switch {
		case !known:
			return None, 0, false, 0
		case !whole:
			fewer = (kept == All || fewer) && covers(r.Key, state.Retention{Keep: r.Keep})
			kept = Some
		case !standsIn[r.Key[:state.SeriesIDLength]]:
			continue
		}
		since := there.Keep - f.Keep.Milliseconds() // for questions about any moment within keep
		if since <= 0 {
			since = there.Keep // for those about now
		}
		if there.Keep > 0 && (has == 0 || since < has) {
			has = since
		}
	}
	if fewer {
		has = 0
	}
	return kept, has, fewer, tile
}

// mistakesMore reports whether filters that exist have a greater rate of false positives than a feature allows: fp was
// lowered, or the window, whose tiles share the rate, made longer.
func mistakesMore(before *features.Registry, f *features.Feature) bool {
	return slices.ContainsFunc(f.Series, func(s *state.Series) bool {
		i := slices.IndexFunc(before.Series, func(held *state.Series) bool { return held.ID == s.ID })
		return i >= 0 && s.Layout().Rated() && before.Series[i].Rate > f.Call.P/float64(f.Window.TileCount())
	})
}

// needs returns how long a past the answers of a feature cover at most, in milliseconds; 0 is all of it.
func needs(f *features.Feature) (longest int64) {
	for _, part := range parts(f) {
		switch {
		case len(part.Parts()) > 0 || len(part.Series) == 0:
		case !part.Window.Forgets():
			return 0
		default:
			longest = max(longest, part.Window.Type.Reach().Milliseconds()+part.Window.Delay.Milliseconds())
		}
	}
	return longest
}

// meanings finds changes in the meaning of features, each once.
type meanings struct {
	before, after *features.Registry
	streams       []Change
	known         map[string][]string
}

func (m *meanings) of(name string) []string {
	if changes, ok := m.known[name]; ok {
		return changes
	}
	b, ok1 := m.before.Feature(name)
	a, ok2 := m.after.Feature(name)
	if !ok1 || !ok2 {
		return nil
	}
	var changes []string
	if b.Definition != a.Definition {
		changes = append(changes, fmt.Sprintf("%s -> %s", b.Definition, a.Definition))
	}
	m.known[name] = changes // while its parts are compared
	var rests func(f *features.Feature)
	rests = func(f *features.Feature) {
		for _, part := range f.Parts() {
			if named, ok := m.after.Feature(part.Name); !ok || named != part {
				rests(part)
			} else if len(m.of(part.Name)) > 0 {
				changes = append(changes, "rests on "+part.Name)
			}
		}
		switch of, ofTable := f.Basis.(*features.OfTable); {
		case ofTable:
			if before, ok := m.before.Table(of.Table.Name); !ok || before.Meaning() != of.Table.Meaning() {
				changes = append(changes, "table "+of.Table.Name+" is read in another way")
			}
		case len(f.Parts()) > 0 || !m.streamChanged(f.Stream.Name):
		case b.Definition == a.Definition && readOtherwise(b, a): // else the definition may be the reason
			changes = append(changes, "the events of stream "+f.Stream.Name+" are read in another way")
		case m.refusesOthers(f.Stream):
			changes = append(changes, "other records of stream "+f.Stream.Name+" become dead letters")
		}
	}
	rests(a)
	slices.Sort(changes)
	m.known[name] = slices.Compact(changes)
	return m.known[name]
}

// parts returns a feature and everything that it is made of.
func parts(f *features.Feature) []*features.Feature {
	all := []*features.Feature{f}
	for _, part := range f.Parts() {
		all = append(all, parts(part)...)
	}
	return all
}

// readOtherwise reports whether the state of an unchanged feature comes from other events, or from other values of the
// same events.
func readOtherwise(b, a *features.Feature) bool {
	counts := map[string]bool{} // series that count events in place of values, or the reverse, as `required` decides
	for i, s := range a.Series {
		counts[s.ID] = i < len(b.Series) && s.Measure != b.Series[i].Measure
	}
	has := func(list []state.Retained, r state.Retained) bool {
		return slices.ContainsFunc(list, func(o state.Retained) bool { return o.Key == r.Key })
	}
	return slices.ContainsFunc(a.Retained(), func(r state.Retained) bool {
		return !has(b.Retained(), r) && !counts[r.Key[:state.SeriesIDLength]]
	})
}

// refusesOthers reports whether other records become dead letters than before by the definition of the stream: those that
// lack a field, or that are from the future, or whose values only some fields take. State has all the events that there were.
func (m *meanings) refusesOthers(after *record.Stream) bool {
	before, _ := m.before.Stream(after.Name)
	return before.MaxFuture != after.MaxFuture || before.Timestamp.Form.Lenient != after.Timestamp.Form.Lenient ||
		!slices.Equal(refusing(before), refusing(after))
}

// refusing lists by which fields a record is a dead letter, sorted.
func refusing(s *record.Stream) (names []string) {
	for _, f := range s.Fields {
		if f.Required || f.Lenient || f.Round {
			names = append(names, fmt.Sprint(f.Name, f.Required, f.Lenient, f.Round))
		}
	}
	slices.Sort(names)
	return names
}

func (m *meanings) streamChanged(name string) bool {
	return slices.ContainsFunc(m.streams, func(c Change) bool { return c.Name == name && len(c.Changes) > 0 })
}

// streamChanges returns the changes of a stream. What changes in all of its topics is said once.
func streamChanges(before, after *record.Stream) (changes []string) {
	topics := func(s *record.Stream) string { return strings.Join(s.Topics(), ", ") }
	changes = changed("topic", topics(before), topics(after))
	first := sourceChanges(cmp.Or(before.In(after.Topic), before), after)
	changes = append(changes, first...)
	for _, in := range after.Others {
		was := before.In(in.Topic)
		if was == nil {
			continue
		}
		for _, c := range sourceChanges(was, in) {
			if !slices.Contains(first, c) {
				changes = append(changes, "in topic "+in.Topic+": "+c)
			}
		}
	}
	return changes
}

// sourceChanges returns the changes of a stream as one of its topics has it.
func sourceChanges(before, after *record.Stream) (changes []string) {
	say := func(what string, b, a any) { changes = append(changes, changed(what, b, a)...) }
	dedup := func(s *record.Stream) string {
		if s.Dedup == 0 {
			return ""
		}
		return window.FormatDuration(s.Dedup)
	}
	match := func(s *record.Stream) string {
		if s.Match == nil {
			return ""
		}
		return s.Match.Text
	}
	say("format", before.Format, after.Format)
	say("match", match(before), match(after))
	say("each", strings.Join(before.Each, "."), strings.Join(after.Each, "."))
	say("timestamp", timestampText(before), timestampText(after))
	say("id", strings.Join(before.ID, "."), strings.Join(after.ID, "."))
	say("remember_ids", before.RememberIDs, after.RememberIDs)
	say("dedup", dedup(before), dedup(after))
	say("max_future", before.MaxFuture, after.MaxFuture)
	say("late to dead letters", before.LateToDeadLetter, after.LateToDeadLetter)
	for _, c := range compare(before.Fields, after.Fields, func(f record.Field) string { return f.Name }, func(b, a record.Field) []string {
		if x, y := fieldText(b), fieldText(a); x != y {
			return []string{x + " -> " + y}
		}
		return nil
	}) {
		switch {
		case c.New:
			changes = append(changes, "field "+c.Name+" is new")
		case c.Gone:
			changes = append(changes, "field "+c.Name+" is gone")
		default:
			changes = append(changes, "field "+c.Name+" "+c.Changes[0])
		}
	}
	return changes
}

// changed says how a part changes, if it does.
func changed(what string, before, after any) []string {
	b, a := fmt.Sprint(before), fmt.Sprint(after)
	if b == a {
		return nil
	}
	return []string{fmt.Sprintf("%s %s -> %s", what, cmp.Or(b, "none"), cmp.Or(a, "none"))}
}

func enrichmentChanges(before, after *features.Enrichment) []string {
	return slices.Concat(changed("topic", before.Topic, after.Topic), changed("service", before.Service.Name, after.Service.Name),
		changed("format", before.Format(), after.Format()))
}

// timestampText describes where a stream's events have their time.
func timestampText(s *record.Stream) string {
	return fieldText(record.Field{Path: s.Timestamp.Path, Form: s.Timestamp.Form})
}

// fieldText describes a field on one line.
func fieldText(f record.Field) string {
	text := ""
	if f.Lat == nil {
		text = strings.Join(f.Path, ".")
	}
	if f.Expr != nil {
		text = f.Expr.Text
	}
	if f.Type != 0 {
		text = f.Type.String() + " " + text
	}
	if f.Scale > 0 {
		text += fmt.Sprintf(" scale %d", f.Scale)
	}
	if form := f.Form.String(); form != "" {
		text += " in " + form
	}
	text += f.Reading()
	if f.Required {
		text += " required"
	}
	if f.Type == value.String {
		text += fmt.Sprintf(" of %d bytes", f.MaxBytes)
	}
	return text
}

// serviceChanges returns the features added to and removed from a service.
func serviceChanges(before, after *features.Service) (changes []string) {
	for _, c := range compare(before.Features, after.Features, func(f *features.Feature) string { return f.Name }, func(_, _ *features.Feature) []string { return nil }) {
		if c.New {
			changes = append(changes, "+ "+c.Name)
		} else {
			changes = append(changes, "- "+c.Name)
		}
	}
	return changes
}

// servicesOf returns the services of each feature, before or after, sorted.
func servicesOf(registries ...*features.Registry) map[string][]string {
	services := map[string][]string{}
	for _, r := range registries {
		for _, s := range r.Services {
			for _, f := range s.Features {
				services[f.Name] = append(services[f.Name], s.Name)
			}
		}
	}
	for name, names := range services {
		slices.Sort(names)
		services[name] = slices.Compact(names)
	}
	return services
}

// costs lists the costs that change.
func costs(before, after *cost.Explanation) (all []Cost) {
	amounts := func(e *cost.Explanation) map[string]int64 {
		m := map[string]int64{}
		for _, s := range e.Streams {
			m["mutations of an event of "+s.Name] = int64(s.Mutations)
		}
		for _, e := range e.Entities {
			by := strings.Join(e.By, "+")
			m["bytes of an entity "+by+", met once"] = e.BytesOnce
			m["bytes of an entity "+by+", full"] = e.BytesFull
		}
		return m
	}
	b, a := amounts(before), amounts(after)
	for what := range b {
		if _, ok := a[what]; !ok {
			a[what] = 0
		}
	}
	for what, n := range a {
		if b[what] != n {
			all = append(all, Cost{what, b[what], n})
		}
	}
	slices.SortFunc(all, func(x, y Cost) int { return cmp.Compare(x.What, y.What) })
	return all
}
