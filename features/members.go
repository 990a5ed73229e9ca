package features

import (
	"slices"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Membership says whether a question for the feature may name members, values
// of its field.
func (f *Feature) Membership() aggregate.Membership {
	if f.Kind == nil || f.Per != "" {
		return aggregate.NoMembers
	}
	return f.Kind.Spec().Members
}

// AskedAbout is the feature asked about members, one or more, where it has a
// Membership. Its answer has Items: Bools, for each member in its order whether
// the window holds it; its Value is not of interest.
func (f *Feature) AskedAbout(members []value.Value) *Feature {
	asked := *f
	asked.Call.Members = f.kept(members)
	if f.Through != nil {
		through := *f.Through
		through.Each = f.Through.Each.AskedAbout(members)
		asked.Through = &through
	}
	return &asked
}

// kept are values of the feature's field as state keeps them.
func (f *Feature) kept(values []value.Value) []value.Value {
	of := f
	if f.Through != nil {
		of = f.Through.Each
	}
	field := of.Stream.FieldIndex(of.Field)
	kept := make([]value.Value, len(values))
	for i, v := range values {
		kept[i] = of.Stream.Kept(field, v)
	}
	return kept
}

// Own is the value that an event has itself of the feature's field, the member
// about which the event's own row asks; null where it lacks it.
func (f *Feature) Own(e *record.Event) value.Value { return e.Values[e.Stream.FieldIndex(f.Field)] }

// MayBeUncertain says whether answers may state how much greater their value may be;
// see Answer.Uncertain.
func (f *Feature) MayBeUncertain() bool {
	return slices.ContainsFunc(f.Series, func(s *state.Series) bool { return s.Measure == state.Touch })
}
