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

// Feature is one question that can be asked.
type Feature struct {
	Name        string
	Description string
	Owner       string
	Definition  string   // in the one-line form
	By          []string // the entity's fields in the order of its values, see state.EntityFields
	ByTypes     []value.Type
	Keep        time.Duration   // how far back a question may ask
	Series      []*state.Series // all that the answer is made of, one for each read
	// Basis is what the feature is answered from.
	Basis Basis

	// What follows is of a feature over a stream, and of one through a list that of
	// its second hop. A derived feature has none of it.
	Stream    *record.Stream
	Kind      aggregate.Function
	Call      aggregate.Call
	Window    window.Window
	Where     string
	Field     string // of the kind; empty for none
	Condition string // of the kind; empty for none
	// Per is the field for each of whose values there is a value; empty for none.
	Per string
	// Columns are those of the log that an exact window looks at.
	Columns logColumns

	retained []state.Retained
}

// Basis is what a feature is answered from: the events of a stream (OverStream),
// other features (*Derived) or a list and what is asked of its members (*Through).
type Basis interface {
	// Parts are the features that the feature is made of, in their order.
	Parts() []*Feature

	valueType(f *Feature) value.Type
	scale(f *Feature) uint8
	shape(f *Feature) aggregate.Shape
	membership(f *Feature) aggregate.Membership
	forgets(f *Feature) bool
	fanOut() int
	key(f *Feature, name string) record.Field
	askedAbout(asked *Feature, members []value.Value)
	retain(f *Feature) []state.Retained
}

// Parts are the features that the feature is made of: none of one over a stream.
func (f *Feature) Parts() []*Feature { return f.Basis.Parts() }

// Type is that of the feature's value.
func (f *Feature) Type() value.Type { return f.Basis.valueType(f) }

// Scale is the greatest number of digits behind the point that a decimal in the
// feature's value may have.
func (f *Feature) Scale() uint8 { return f.Basis.scale(f) }

// Shape is what the feature's value looks like.
func (f *Feature) Shape() aggregate.Shape { return f.Basis.shape(f) }

// Membership says whether a question for the feature may name members, values
// of its field.
func (f *Feature) Membership() aggregate.Membership { return f.Basis.membership(f) }

// Forgets says whether the feature's past is forgotten after a time, which is
// Keep.
func (f *Feature) Forgets() bool { return f.Basis.forgets(f) }

// FanOut is how many entities more than the one asked about the feature may
// look at.
func (f *Feature) FanOut() int { return f.Basis.fanOut() }

// Key is the field that holds one of the feature's keys in its events. Of a
// derived feature's parts it is the field with the greatest scale.
func (f *Feature) Key(name string) record.Field { return f.Basis.key(f, name) }

// Retained are what the feature needs of state: all that its parts need.
func (f *Feature) Retained() []state.Retained { return f.retained }

// AskedAbout is the feature asked about members, one or more, where it has a
// Membership. Its answer has Items: Bools, for each member in its order whether
// the window holds it; its Value is not of interest.
func (f *Feature) AskedAbout(members []value.Value) *Feature {
	asked := *f
	f.Basis.askedAbout(&asked, members)
	return &asked
}

// retain finds what the feature and its parts need of state.
func (f *Feature) retain() {
	for _, part := range f.Parts() {
		part.retain()
	}
	f.retained = f.Basis.retain(f)
}

// retainedBy is what features need together.
func retainedBy(parts []*Feature) (list []state.Retained) {
	for _, part := range parts {
		list = append(list, part.retained...)
	}
	return list
}

// MayBeUncertain says whether answers may state how much greater their value may be;
// see Answer.Uncertain.
func (f *Feature) MayBeUncertain() bool {
	return slices.ContainsFunc(f.Series, func(s *state.Series) bool { return s.Layout().Forgets() })
}

// OrderBy puts By, and its types with it, in the order of an entity's values.
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
