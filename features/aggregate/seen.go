package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// seen reports for each value in a question whether an event had it. Tiles answer from Bloom filters, see
// state.BloomSize: a value that occurred is always found. Another value may be found, too, with the probability that
// the answer states. If that exceeds fp, because they had another fp before, it is unknown whether a value that is found
// occurred. Filters without room for more add no further values, so of one that is not found it is unknown, too: else
// whoever floods an entity with values would make all of them known, or forgotten.
type seen struct{}

// CurrentLeftOut is the choice of `current` by which the event in hand does not count.
const CurrentLeftOut = 0

func (seen) Spec() Spec {
	return Spec{
		Name: "seen", Title: "whether the entity had the values that the question names as `members`",
		Note: "False is always right. True is wrong with the `false_positive_rate` that the answer states, at most `fp` for the whole window. Where that would be exceeded, as after `fp` was lowered or the window made longer, a value that is not surely new is null, and the answer `capped`. Where an entity had more values than its key has room for, a value that is not found is null, too. So a rule that asks for a first time must decide about null.\n\n" +
			"The first values of a tile are kept exactly, as 64-bit hashes; further values go into Bloom filters. `max`, 1000 by default, is the number of " +
			"values that an entity is expected to meet in a tile, and sizes the filters. With more values the filters grow, as long as the key has room.\n\n" +
			"The event in hand does not count, so false is a first time: in an event's own row (`weir materialize`, `enrich`), which asks about the event's own value, and with a question that has the event as `pending`. " +
			"With `current=counted` it counts, which matters with `where` or `delay`. Once the event is applied, a question counts it like any other; only the log can leave it out again (`exclude=current`).",
		Types: distinctTypes, FieldLast: true, Exact: true, Neutral: value.Value{Type: value.Bool}, DefaultMax: 1000,
		Parameters: []Parameter{{Name: "fp", Type: Rate, Default: "0.01"}, {Name: "current", Type: Choice, Default: "left_out", Choices: []string{"left_out", "counted"}}},
		Members:    MembersRequired,
		Result:     value.Bool, Example: "SEEN(30d, transaction, user, merchant)",
	}
}

func (seen) Measures(Call) []state.Measure { return []state.Measure{state.Seen} }

func (seen) Merge(c Call, _ int64, s []state.WindowState) Result {
	filter := s[0].Filter
	if filter == nil {
		return c.asked(false, func([]byte) (yes, known bool) { return false, true })
	}
	rate := filter.FalsePositiveRate()
	r := c.asked(true, func(text []byte) (yes, known bool) {
		yes = filter.Has(text)
		if yes {
			return true, rate <= c.P
		}
		return false, !filter.Full()
	})
	r.FalsePositiveRate = rate
	return r
}

func (seen) Fold(c Call, _ int64, events []Sample) Result { return c.askedOf(events) }
