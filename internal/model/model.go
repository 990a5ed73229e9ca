// Package model computes what every feature must be by the plainest means: it
// keeps all events and loops over them. Tests compare the store's answers with
// its own. It shares the decoder of records with the pipeline, and nothing
// else: neither the write plan, nor tiles, nor the merging of what they hold.
package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// Model holds the events of a registry's streams. It is not safe for
// concurrent use.
type Model struct {
	decoder *features.Decoder
	streams map[*features.Stream]*stream
	answers map[string]*feature
	derived map[string]*derived
	strings map[string][]byte
}

// stream is the events of one stream, in the order in which they came.
type stream struct {
	features []*feature
	times    []int64
	kept     []int // fields that features look at
	columns  map[int][]kinds.Value
}

// feature is the events that one feature counts.
type feature struct {
	*features.Feature
	stream *stream
	where  *features.Expr
	by     []int
	field  int                // -1 for none
	events map[string][]int32 // of the stream, by entity

	condition *features.Expr
	holds     map[int32]bool // the events for which it does
}

// New makes an empty model.
func New(r *features.Registry) *Model {
	m := &Model{
		decoder: r.NewDecoder(), streams: map[*features.Stream]*stream{}, answers: map[string]*feature{},
		derived: map[string]*derived{}, strings: map[string][]byte{},
	}
	for _, f := range r.Features {
		if f.Parts != nil {
			m.derived[f.Name] = newDerived(f)
			continue
		}
		s := m.streams[f.Stream]
		if s == nil {
			s = &stream{columns: map[int][]kinds.Value{}}
			m.streams[f.Stream] = s
		}
		a := newFeature(f, s)
		if a.field >= 0 && !slices.Contains(s.kept, a.field) {
			s.kept = append(s.kept, a.field)
		}
		s.features = append(s.features, a)
		m.answers[f.Name] = a
	}
	return m
}

func newFeature(f *features.Feature, s *stream) *feature {
	a := &feature{Feature: f, stream: s, field: -1, events: map[string][]int32{}, holds: map[int32]bool{}}
	index := func(name string) int {
		return slices.IndexFunc(f.Stream.Fields, func(field features.Field) bool { return field.Name == name })
	}
	for _, by := range slices.Sorted(slices.Values(f.By)) {
		a.by = append(a.by, index(by))
	}
	if f.Field != "" {
		a.field = index(f.Field)
	}
	a.where, a.condition = compile(f.Where, f.Stream), compile(f.Condition, f.Stream)
	return a
}

func compile(source string, s *features.Stream) *features.Expr {
	if source == "" {
		return nil
	}
	e, err := features.CompileExpr(source, s.Fields, kinds.Bool)
	if err != nil {
		panic(fmt.Sprintf("the registry holds an expression that does not compile: %s: %v", source, err))
	}
	return e
}

// Apply counts a record. Its error is that of features.Decoder.
func (m *Model) Apply(rec features.Record) error {
	events, err := m.decoder.Decode(&rec)
	if err != nil {
		return err
	}
	// A record is poison as a whole, be it by the last of its filters.
	for i := range events {
		if err := m.try(&events[i]); err != nil {
			return err
		}
	}
	for i := range events {
		m.add(&events[i])
	}
	return nil
}

func (m *Model) try(e *features.Event) error {
	s := m.streams[e.Stream]
	if s == nil {
		return nil
	}
	for _, f := range s.features {
		for _, expr := range []*features.Expr{f.where, f.condition} {
			if expr == nil {
				continue
			}
			if _, err := expr.True(e.Values); err != nil {
				return &features.Poison{Reason: features.BadExpression, Stream: e.Stream.Name, Message: err.Error()}
			}
		}
	}
	return nil
}

func (m *Model) add(e *features.Event) {
	s := m.streams[e.Stream]
	if s == nil {
		return
	}
	n := int32(len(s.times))
	s.times = append(s.times, e.Time)
	for _, field := range s.kept {
		s.columns[field] = append(s.columns[field], m.hold(e.Values[field]))
	}
	var text []byte
	for _, f := range s.features {
		if f.where != nil {
			if passed, _ := f.where.True(e.Values); !passed {
				continue
			}
		}
		entity, ok := f.entity(text[:0], e.Values)
		text = entity
		if !ok || f.late(e) {
			continue
		}
		f.events[string(entity)] = append(f.events[string(entity)], n)
		if f.condition != nil {
			f.holds[n], _ = f.condition.True(e.Values)
		}
	}
}

// hold is a value that does not alias the record. Equal strings share memory.
func (m *Model) hold(v kinds.Value) kinds.Value {
	if v.Type != kinds.String {
		return v
	}
	held, ok := m.strings[string(v.Str)]
	if !ok {
		held = slices.Clone(v.Str)
		m.strings[string(v.Str)] = held
	}
	v.Str = held
	return v
}

// entity is the text of the entity to which an event belongs, if any.
func (f *feature) entity(text []byte, values []kinds.Value) ([]byte, bool) {
	for i, field := range f.by {
		if values[field].IsNull() {
			return text, false
		}
		text = kinds.AppendEntity(text, i == 0, values[field])
	}
	return text, true
}

func (f *feature) late(e *features.Event) bool {
	return slices.ContainsFunc(f.Series, func(s *kinds.Series) bool { return s.Late(e.Time, e.Now) })
}

// Entities lists the texts of a feature's entities that have events, sorted. Of
// a derived feature they are those of its parts that have all its keys.
func (m *Model) Entities(f *features.Feature) []string {
	if f.Parts != nil {
		return m.entitiesOf(f)
	}
	return slices.Sorted(maps.Keys(m.answers[f.Name].events))
}

// Answer is the feature's value for the entity with that text, at a moment in
// milliseconds. Estimates are answered by what they estimate.
func (m *Model) Answer(f *features.Feature, entity string, at int64) kinds.Result {
	if f.Parts != nil {
		return m.derived[f.Name].answer(m, entity, at)
	}
	a := m.answers[f.Name]
	at -= f.Window.Delay.Milliseconds()
	if f.Kind.Spec().Method == "last_seen" && !f.Window.Exact {
		return a.lastSeen(entity, at)
	}
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	switch {
	case f.Window.Exact:
		// (at-size, at], with the edges turned round where that is wanted.
		to = at + 1
		if f.Window.OpenRight {
			to = at
		}
		if f.Window.Size > 0 {
			from = at - f.Window.Size.Milliseconds()
			if !f.Window.ClosedLeft {
				from++
			}
		}
	case f.Window.Size > 0:
		// The window ends with the tile that holds the moment and is as many
		// tiles long as fit into its size.
		tile := f.Window.Tile.Milliseconds()
		to = (kinds.FloorDiv(at, tile) + 1) * tile
		from = to - f.Window.Size.Milliseconds()
	}
	var samples []kinds.Sample
	for _, n := range a.events[entity] {
		if t := a.stream.times[n]; from <= t && t < to {
			samples = append(samples, a.sample(n))
		}
	}
	slices.SortStableFunc(samples, func(a, b kinds.Sample) int { return cmp.Compare(a.Time, b.Time) })
	return f.Kind.Fold(f.Call, at, samples)
}

func (f *feature) sample(n int32) kinds.Sample {
	s := kinds.Sample{Time: f.stream.times[n], Holds: f.holds[n]}
	if f.field >= 0 {
		s.Value = f.stream.columns[f.field][n]
	}
	return s
}

// lastSeen is the answer of count_distinct's method last_seen: of the values
// of all times the newest are kept, and each has but the time it was last met.
func (f *feature) lastSeen(entity string, at int64) kinds.Result {
	last := map[string]int64{}
	for _, n := range f.events[entity] {
		s := f.sample(n)
		if s.Value.IsNull() {
			continue
		}
		value := string(s.Value.AppendText(nil))
		if t, ok := last[value]; !ok || s.Time > t {
			last[value] = s.Time
		}
	}
	// Which of two values last met at the same time is kept makes no difference.
	times := slices.SortedFunc(maps.Values(last), func(a, b int64) int { return cmp.Compare(b, a) })
	most := f.Series[0].Max
	times = times[:min(len(times), most)]
	r := kinds.Result{Value: kinds.Value{Type: kinds.Int}}
	from := int64(math.MinInt64)
	if f.Window.Size > 0 {
		from = at - f.Window.Size.Milliseconds()
	}
	for _, t := range times {
		switch {
		case t > at:
			r.Uncertain++
		case t > from:
			r.Value.Num++
		}
	}
	r.Found = r.Value.Num+r.Uncertain > 0
	// Where a value is kept that is older than the window, none was put out
	// that belongs into it.
	r.Capped = r.Value.Num+r.Uncertain == int64(most)
	return r
}
