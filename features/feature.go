package features

import (
	"slices"
	"time"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Feature is a compiled feature.
type Feature struct {
	Name        string
	Description string
	Owner       string
	Definition  string   // in the one-line form
	By          []string // the entity's fields in the order of its values, see state.EntityFields
	ByTypes     []value.Type
	Keep        time.Duration   // how far back a question may ask
	Series      []*state.Series // what the answer is computed from, one for each read
	// Basis is what the feature is answered from.
	Basis Basis
	// InHand is the stream whose event, the one being scored, the feature or a part of it reads fields of; nil for none.
	InHand *record.Stream

	// The following fields describe a feature over a stream. A feature through a list has those of
	// its second hop, a derived feature has none.
	Stream    *record.Stream
	Function  aggregate.Function
	Spec      *aggregate.Spec // of the function, made once
	Call      aggregate.Call
	Window    window.Window
	Where     string
	Field     string // of the function; empty for none
	Condition string // of the function; empty for none
	// Per is the field by whose values the answer is split; empty for none.
	Per string
	// Columns are the columns of the log that an exact window reads.
	Columns LogColumns
	// Compared is what of Where compares the events of the log with the event in hand; nil if nothing does.
	Compared *Comparison

	retained []state.Retained
	filling  []state.Retained // see Filling; nil for retained
}

// Basis is what a feature is answered from: the events of a stream (OverStream), other features (*Derived), a list and a
// feature of its members (*MultiHop), or, as a part only, a row of a table (*OfTable).
type Basis interface {
	// Parts returns the features that this one is made of, in order.
	Parts() []*Feature

	valueType(f *Feature) value.Type
	scale(f *Feature) uint8
	shape(f *Feature) aggregate.Shape
	membership(f *Feature) aggregate.Membership
	forgets(f *Feature) bool
	meaning(f *Feature) string
	fanOut() int
	key(f *Feature, name string) record.Field
	askedAbout(asked *Feature, members []value.Value)
	retain(f *Feature) []state.Retained
}

// Parts returns the features that this one is made of: none if it is over a stream.
func (f *Feature) Parts() []*Feature { return f.Basis.Parts() }

// Type returns the type of the feature's value.
func (f *Feature) Type() value.Type { return f.Basis.valueType(f) }

// Scale returns the greatest number of fractional digits of a decimal in the feature's value.
func (f *Feature) Scale() uint8 { return f.Basis.scale(f) }

// Shape returns the shape of the feature's value.
func (f *Feature) Shape() aggregate.Shape { return f.Basis.shape(f) }

// Membership reports whether a question may name members, that is, values of the feature's field.
func (f *Feature) Membership() aggregate.Membership { return f.Basis.membership(f) }

// Meaning says in words what the feature computes, of what and for each of what: in a definition, the order of its fields says
// it. Of an expression it says only what event in hand and which rows of tables that reads.
func (f *Feature) Meaning() string { return f.Basis.meaning(f) }

// Forgets reports whether the feature forgets its past after a time, Keep.
func (f *Feature) Forgets() bool { return f.Basis.forgets(f) }

// FanOut returns how many further entities an answer may read.
func (f *Feature) FanOut() int { return f.Basis.fanOut() }

// Key returns the field of events that holds one of the feature's keys. For a derived feature it is the one with the
// greatest scale among the fields of its parts.
func (f *Feature) Key(name string) record.Field { return f.Basis.key(f, name) }

// Retained lists the state that the feature and its parts need.
func (f *Feature) Retained() []state.Retained { return f.retained }

// Filling returns the same of all generations that are kept of the feature's series: what it reads, and what may be filled meanwhile.
func (f *Feature) Filling() []state.Retained {
	if f.filling == nil {
		return f.retained
	}
	return f.filling
}

// TopicsOf returns the topics whose events features need, sorted.
func TopicsOf(list []*Feature) (topics []string) {
	for _, f := range list {
		for _, kept := range f.retained {
			topics = append(topics, kept.Topic)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// AskedAbout returns the feature asked about one or more members; it must have a Membership. Its answer has one Bool in
// Items for each member, in order, which reports whether the window holds it; its Value is meaningless.
func (f *Feature) AskedAbout(members []value.Value) *Feature {
	asked := *f
	f.Basis.askedAbout(&asked, members)
	return &asked
}

// OfEvent returns the fields of the event in hand, of the stream InHand, that the feature or a part of it reads, as their indexes in
// the stream.
func (f *Feature) OfEvent() (fields []int) {
	switch d, ok := f.Basis.(*Derived); {
	case ok:
		fields = slices.Clone(d.Expr.OfEvent())
	case f.Compared != nil:
		return slices.Clone(f.Compared.Expr.OfEvent())
	}
	for _, part := range f.Parts() {
		for _, i := range part.OfEvent() {
			if !slices.Contains(fields, i) {
				fields = append(fields, i)
			}
		}
	}
	return fields
}

// MayBeOf reports whether an event can be in hand for an entity of the feature: for none of its keys it has another value.
func (f *Feature) MayBeOf(event *record.Event, entity string) bool {
	texts := state.SplitEntity(nil, entity)
	for i, key := range f.By {
		at := event.Stream.FieldIndex(key)
		if at >= 0 && !event.Values[at].IsNull() && string(state.AppendEntity(nil, true, event.Values[at])) != texts[i] {
			return false
		}
	}
	return true
}

// retain finds the state that the feature and its parts need.
func (f *Feature) retain() {
	for _, part := range f.Parts() {
		part.retain()
	}
	f.retained = f.Basis.retain(f)
}

// retainedBy returns the state that the features need together.
func retainedBy(parts []*Feature) (list []state.Retained) {
	for _, part := range parts {
		list = append(list, part.retained...)
	}
	return list
}

// MayBeUncertain reports whether answers may state an upper bound of their error; see Answer.Uncertain.
func (f *Feature) MayBeUncertain() bool {
	return slices.ContainsFunc(f.Series, func(s *state.Series) bool { return s.Layout().Forgets() })
}

// OrderBy sorts By, and its types with it, into the order of an entity's values.
func (f *Feature) OrderBy() {
	types := map[string]value.Type{}
	for i, name := range f.By {
		types[name] = f.ByTypes[i]
	}
	f.By = state.EntityFields(slices.Clone(f.By))
	for i, name := range f.By {
		f.ByTypes[i] = types[name]
	}
}
