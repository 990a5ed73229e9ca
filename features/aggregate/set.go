package aggregate

import (
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// set lists the distinct values of a field, sorted.
type set struct{}

func (set) Spec() Spec {
	return Spec{
		Name: "set", Title: "the distinct values of a field, sorted",
		Note:  orderNote + " " + sampleNote + " If there are more than `max` values, the answer has `max` of them, chosen by their hashes, and is `capped`. " + membersNote,
		Types: distinctTypes, FieldLast: true, Exact: true, MultiHop: true, Shape: List, Members: MembersOptional, DefaultMax: defaultValues,
		Example: "SET(30d, transaction, device, user)",
	}
}

// membersNote applies to functions that questions may ask about members.
const membersNote = "A question may [name `members`](questions.md#ask-about-members)."

func (set) Measures(Call) []state.Measure { return []state.Measure{state.Distinct} }

func (set) Merge(c Call, _ int64, s []state.WindowState) Result {
	if c.Members != nil {
		return c.askedOfSample(&s[0])
	}
	r := c.setOf(s[0].Members, s[0].Secret)
	r.Capped = r.Capped || s[0].Bound > 0
	return r
}

func (set) Fold(c Call, _ int64, events []Sample) Result {
	if c.Members != nil {
		return c.askedOf(events)
	}
	var texts []string
	for _, v := range fieldOf(events) {
		texts = append(texts, string(v.AppendText(nil)))
	}
	slices.Sort(texts)
	return c.setOf(slices.Compact(texts), c.Secret)
}

// setOf lists distinct values, given their texts: those that a secret chooses, if there are more than the call's Max.
func (c Call) setOf(texts []string, secret state.Secret) Result {
	kept := secret.LeastHashes(texts, c.Max)
	values := make([]value.Value, len(kept))
	for i, text := range kept {
		values[i] = value.ParseText(c.Type, c.Scale, text)
	}
	slices.SortFunc(values, value.Compare)
	r := listOf(values)
	r.Capped = len(kept) < len(texts)
	return r
}
