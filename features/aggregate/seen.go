package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// seen says of values whether an entity met them: those that the question
// names. In tiles it is answered from Bloom filters, see BloomSize: a value
// that was met is always found, and one that was not is taken for one that was
// with the probability that the answer states, which is never more than fp for
// the whole window.
type seen struct{}

func (seen) Spec() Spec {
	return Spec{
		Name: "seen", Title: "whether values of a field were met, those that the question names as its `members`",
		Note: "In an event's own row (`weir materialize`) it is asked about the event's own value, as of just before that event: " +
			"false is a first time. The first values of a tile are kept as hashes of 64 bits, exactly; " +
			"what is more goes into Bloom filters, sized by `max`, the number of values that an entity is expected to meet in a tile, " +
			"1000 by default; of more values the filters grow and `fp` still holds. False is always right; " +
			"true is wrong with the `false_positive_rate` that the answer states, for the whole window `fp` at the most.",
		Types: anyType, FieldLast: true, Exact: true, Neutral: value.Value{Type: value.Bool}, DefaultMax: 1000,
		Parameters: []Parameter{{Name: "fp", Type: Rate, Default: "0.01"}}, Members: MembersNeeded,
		Result: value.Bool, Example: "SEEN(30d, transaction, user, merchant)",
	}
}

func (seen) Measures(Call) []state.Measure { return []state.Measure{state.Seen} }

func (seen) Merge(c Call, _ int64, s []state.WindowState) Result {
	filter := s[0].Filter
	if filter == nil {
		return c.asked(false, func([]byte) bool { return false })
	}
	r := c.asked(true, filter.Has)
	r.FalsePositiveRate = filter.FalsePositiveRate()
	return r
}

func (seen) Fold(c Call, _ int64, events []Sample) Result { return c.askedOf(events) }
