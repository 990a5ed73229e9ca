// Package model computes the expected value of every feature by the simplest means: it
// keeps all events and loops over them. Tests compare the answers of stores with it. It
// shares only the decoder of records with the pipeline: neither the mapper, nor tiles, nor
// the merging of buckets.
package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Model holds the events of a registry's streams. It is not safe for
// concurrent use.
type Model struct {
	// Secret chooses which values lists have, if there are more than their max: that of the store compared with.
	Secret state.Secret
	// InHand is the event being scored, for answers of features that read its fields; nil for none.
	InHand *record.Event

	decoder *record.Decoder
	streams map[*record.Stream]*stream
	answers map[*features.Feature]*feature
	derived map[string]*derived
	tables  map[*features.Table]*table
	strings map[string][]byte
	until   int64 // events after it do not count, see AnswerUntil

	partitions map[state.Partition]*arrivals
}

// stream holds the events of one stream in order of arrival.
type stream struct {
	features []*feature
	times    []int64
	logs     map[string]*log // by by-fields
	kept     []int           // fields that features use
	columns  map[int][]value.Value
}

// feature is the set of events that one feature counts.
type feature struct {
	*features.Feature
	model  *Model
	stream *stream
	where  *expr.Expr
	by     []int
	field  int                // -1 for none
	per    int                // -1 for none
	events map[string][]int32 // of the stream, by entity
	log    *log               // of exact features

	beyond   bool       // something was too large to be compared for the last answer
	compared *expr.Expr // the whole filter, if it compares with the event in hand; see compileInHand

	condition *expr.Expr
	holds     map[int32]bool // the events for which the condition holds

	pages map[int64]int64 // beginnings of calendar units, by quarters of an hour
}

// New makes an empty model.
func New(r *features.Registry) *Model {
	m := &Model{
		decoder: r.NewDecoder(), streams: map[*record.Stream]*stream{}, answers: map[*features.Feature]*feature{},
		derived: map[string]*derived{}, tables: map[*features.Table]*table{}, strings: map[string][]byte{}, until: math.MaxInt64,
		partitions: map[state.Partition]*arrivals{},
	}
	for _, t := range r.Tables {
		m.tables[t] = &table{Table: t, decoder: record.NewDecoder([]*record.Stream{t.Rows}), keys: map[string]bool{}}
	}
	for _, f := range r.Features {
		switch basis := f.Basis.(type) {
		case *features.Derived:
			m.derived[f.Name] = newDerived(f, basis)
		case *features.MultiHop:
			m.watch(basis.Set)
			m.watch(basis.Each)
		default:
			m.watch(f)
		}
	}
	return m
}

// watch makes the model keep what a feature over a stream needs.
func (m *Model) watch(f *features.Feature) {
	if m.answers[f] != nil {
		return
	}
	s := m.streams[f.Stream]
	if s == nil {
		s = &stream{columns: map[int][]value.Value{}, logs: map[string]*log{}}
		m.streams[f.Stream] = s
	}
	a := newFeature(f, s)
	a.model = m
	fields := []int{a.field, a.per}
	if f.Compared != nil {
		for i := range f.Stream.Fields {
			fields = append(fields, i)
		}
	}
	for _, field := range fields {
		if field >= 0 && !slices.Contains(s.kept, field) {
			s.kept = append(s.kept, field)
		}
	}
	s.features = append(s.features, a)
	s.shareLog(a)
	m.answers[f] = a
}

func newFeature(f *features.Feature, s *stream) *feature {
	a := &feature{
		Feature: f, stream: s, field: -1, per: -1, events: map[string][]int32{}, holds: map[int32]bool{},
	}
	index := func(name string) int {
		return slices.IndexFunc(f.Stream.Fields, func(field record.Field) bool { return field.Name == name })
	}
	for _, by := range f.By {
		a.by = append(a.by, index(by))
	}
	if f.Field != "" {
		a.field = index(f.Field)
	}
	if f.Per != "" {
		a.per = index(f.Per)
	}
	a.where, a.condition = compile(f.Mapped(), f.Stream), compile(f.Condition, f.Stream)
	if f.Compared != nil {
		a.compared = compileInHand(f.Where, f.Stream.Variables(), f.Stream, value.Bool)
	}
	return a
}

// compileInHand compiles an expression over values and over the fields of the event in hand, which follow them under names of
// their own.
func compileInHand(text string, fields []expr.Variable, of *record.Stream, want value.Type) *expr.Expr {
	if of != nil {
		for _, field := range of.Fields {
			fields = append(fields, expr.Variable{Name: "event_" + field.Name, Type: field.Type, Scale: field.Scale})
		}
	}
	e, err := expr.Compile(strings.ReplaceAll(text, "event.", "event_"), fields, want)
	if err != nil {
		panic(fmt.Sprintf("the registry holds an expression that does not compile: %s: %v", text, err))
	}
	return e
}

func compile(text string, s *record.Stream) *expr.Expr {
	if text == "" {
		return nil
	}
	e, err := expr.Compile(text, s.Variables(), value.Bool)
	if err != nil {
		panic(fmt.Sprintf("the registry holds an expression that does not compile: %s: %v", text, err))
	}
	return e
}

// Apply adds a record. It returns the error of record.Decoder, except that a bad row of a table is none.
func (m *Model) Apply(rec record.Record) error {
	for _, t := range m.tables {
		if t.File == "" && t.Rows.Topic == rec.Partition.Topic {
			if err := t.take(&rec); err != nil {
				return err
			}
		}
	}
	p := m.pass(&rec)
	events, err := m.decoder.Decode(&rec)
	if err != nil {
		return err
	}
	// A record is poison as a whole, even if only its last filter fails.
	for i := range events {
		if err := m.try(&events[i]); err != nil {
			return err
		}
	}
	for i := range events {
		if !p.repeats(&events[i]) {
			m.add(&events[i])
		}
	}
	return nil
}

func (m *Model) try(e *record.Event) error {
	s := m.streams[e.Stream]
	if s == nil {
		return nil
	}
	for _, f := range s.features {
		for _, expr := range []*expr.Expr{f.where, f.condition} {
			if expr == nil {
				continue
			}
			if _, err := expr.True(e.Values); err != nil {
				return &record.Poison{Reason: record.BadExpression, Stream: e.Stream.Name, Message: err.Error()}
			}
		}
	}
	return nil
}

func (m *Model) add(e *record.Event) {
	s := m.streams[e.Stream]
	if s == nil {
		return
	}
	n := int32(len(s.times))
	s.times = append(s.times, e.Time)
	for _, field := range s.kept {
		s.columns[field] = append(s.columns[field], m.hold(e.Stream.Kept(field, e.Values[field])))
	}
	for _, l := range s.logs {
		l.add(e, n)
	}
	var text []byte
	for _, f := range s.features {
		entity, ok := f.entity(text[:0], e.Values)
		text = entity
		if !ok || f.late(e) {
			continue
		}
		if !f.takes(e) {
			continue
		}
		f.events[string(entity)] = append(f.events[string(entity)], n)
		if f.condition != nil {
			f.holds[n], _ = f.condition.True(e.Values)
		}
	}
}

// hold copies a value so that it does not alias the record. Equal strings share memory.
func (m *Model) hold(v value.Value) value.Value {
	if v.Type != value.String {
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

// entity returns the text of the entity that an event belongs to, if any.
func (f *feature) entity(text []byte, values []value.Value) ([]byte, bool) {
	for i, field := range f.by {
		if values[field].IsNull() {
			return text, false
		}
		text = state.AppendEntity(text, i == 0, values[field])
	}
	return text, true
}

func (f *feature) late(e *record.Event) bool {
	return slices.ContainsFunc(f.Series, func(s *state.Series) bool { return s.Late(e.Time, e.Now) })
}

// Entities returns the texts of a feature's entities that have events, sorted. For a derived
// feature these are the entities of its parts that have all its keys, for a multi-hop feature those
// of its first hop, for a row of a table the keys that have or had one, unless these are networks.
func (m *Model) Entities(f *features.Feature) []string {
	switch basis := f.Basis.(type) {
	case *features.Derived:
		return m.entitiesOf(f)
	case *features.MultiHop:
		return m.Entities(basis.Set)
	case *features.OfTable:
		if basis.Table.Networks {
			return nil
		}
		return slices.Sorted(maps.Keys(m.tables[basis.Table].keys))
	}
	return slices.Sorted(maps.Keys(m.answers[f].events))
}

// AnswerUntil is Answer if the events after the moment had never occurred. They still displace others from a log.
func (m *Model) AnswerUntil(f *features.Feature, entity string, at int64) aggregate.Result {
	m.until = at
	defer func() { m.until = math.MaxInt64 }()
	return m.Answer(f, entity, at)
}

// Has reports whether a feature over a stream counts any event of an entity since a time, in milliseconds.
func (m *Model) Has(f *features.Feature, entity string, since int64) bool {
	a := m.answers[f]
	return slices.ContainsFunc(a.events[entity], func(n int32) bool { return a.stream.times[n] >= since })
}

// Answer returns the feature's value for the entity with that text, at a moment in milliseconds.
// It counts all events of the last tile. For estimates it returns the exact value.
func (m *Model) Answer(f *features.Feature, entity string, at int64) aggregate.Result {
	if d, ok := m.derived[f.Name]; ok {
		return d.answer(m, entity, at)
	}
	if of, ok := f.Basis.(*features.OfTable); ok {
		key, known := m.keyOf(f, of, entity)
		if !known {
			return aggregate.Result{}
		}
		return m.ofTable(of, key, at)
	}
	return m.call(f, f.Call, entity, at)
}

// AnswerMembers is Answer for a question that names members: an item for each reports whether the window contains it.
func (m *Model) AnswerMembers(f *features.Feature, entity string, at int64, members []value.Value) aggregate.Result {
	call := f.Call
	call.Members = members
	return m.call(f, call, entity, at)
}

// call answers a call of the feature's function.
func (m *Model) call(f *features.Feature, call aggregate.Call, entity string, at int64) aggregate.Result {
	call.Secret = m.Secret
	if multiHop, ok := f.Basis.(*features.MultiHop); ok {
		return m.multiHop(f, multiHop, call, entity, at)
	}
	a := m.answers[f]
	if a.compared != nil && !m.has(f.InHand) {
		return aggregate.Result{}
	}
	if f.Spec.Method == "last_seen" && !f.Window.Exact {
		return a.lastSeen(entity, at)
	}
	samples, capped := a.within(at, entity)
	r := fold(f, call, at, samples)
	r.Capped = r.Capped || capped && !f.Settled(samples) || a.beyond
	return withheld(r)
}

// withheld is the result without a value if a cap dropped all events of the window.
func withheld(r aggregate.Result) aggregate.Result {
	if r.Capped && !r.Found {
		r.Found, r.Value = true, value.Value{}
		if len(r.Items) == 0 { // items are about members
			r.Items = nil
		}
	}
	return r
}

// fold applies a call of the feature's function to the events of its window.
func fold(f *features.Feature, call aggregate.Call, at int64, samples []aggregate.Sample) aggregate.Result {
	asked := *f
	asked.Call = call
	return asked.Fold(at-f.Window.Delay.Milliseconds(), samples, call.Secret)
}

// within returns the events of entities in their windows at a moment.
func (f *feature) within(at int64, entities ...string) (samples []aggregate.Sample, capped bool) {
	f.beyond = false
	for _, entity := range entities {
		w := f.window(entity, at)
		for _, n := range w.events {
			if f.compared == nil || f.compares(n) {
				samples = append(samples, f.sample(n))
			}
		}
		capped = capped || w.capped
	}
	slices.SortStableFunc(samples, func(a, b aggregate.Sample) int { return cmp.Compare(a.Time, b.Time) })
	return samples, capped
}

// has reports whether there is an event in hand of a stream.
func (m *Model) has(s *record.Stream) bool { return m.InHand != nil && m.InHand.Stream.Name == s.Name }

// compares reports whether the feature's filter holds for an event of the stream beside the event in hand.
func (f *feature) compares(n int32) bool {
	var values []value.Value
	for field := range f.Stream.Fields {
		values = append(values, f.stream.columns[field][n])
	}
	for field, v := range f.model.InHand.Values {
		values = append(values, f.Stream.Kept(field, v))
	}
	passes, err := f.compared.True(values)
	f.beyond = f.beyond || err != nil
	return passes
}

func (f *feature) sample(n int32) aggregate.Sample {
	s := aggregate.Sample{Time: f.stream.times[n], Holds: f.holds[n]}
	if f.field >= 0 {
		s.Value = f.stream.columns[f.field][n]
	}
	if f.per >= 0 {
		s.Category = f.stream.columns[f.per][n]
	}
	return s
}

// lastSeen returns the answer of count_distinct's method last_seen: only the newest values are
// kept, each with the time it was last seen.
func (f *feature) lastSeen(entity string, at int64) aggregate.Result {
	last := map[string]int64{}
	for _, n := range f.events[entity] {
		s := f.sample(n)
		if s.Value.IsNull() || s.Time > f.model.until {
			continue
		}
		value := string(s.Value.AppendText(nil))
		if t, ok := last[value]; !ok || s.Time > t {
			last[value] = s.Time
		}
	}
	// If two values were last seen at the same time, it does not matter which is kept.
	times := slices.SortedFunc(maps.Values(last), func(a, b int64) int { return cmp.Compare(b, a) })
	most := f.Call.Max
	times = times[:min(len(times), most)]
	r := aggregate.Result{Value: value.Value{Type: value.Int}}
	from := f.begins(entity, at)
	for _, t := range times {
		switch {
		case t > at:
			r.Uncertain++
		case t >= from:
			r.Value.Num++
		}
	}
	r.Found = r.Value.Num+r.Uncertain > 0
	// If a value older than the window is kept, none of the window was dropped.
	r.Capped = r.Value.Num+r.Uncertain == int64(most)
	r.Found = r.Found && r.Uncertain < int64(most)
	return withheld(r)
}
