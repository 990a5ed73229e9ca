package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Membership says whether a question may name members: values of the function's
// field, of each of which the answer says whether the window holds it.
type Membership uint8

// The memberships.
const (
	NoMembers     Membership = iota // the function has none
	MembersMay                      // asked with members, it answers about them, and else with its value
	MembersNeeded                   // there is no answer without
)

// asked is the result of a call with members: for each of them, in their order,
// whether it was met.
func (c Call) asked(found bool, met func(text []byte) bool) Result {
	r := Result{Found: found}
	var text []byte
	for _, member := range c.Members {
		text = member.AppendText(text[:0])
		v := value.Value{Type: value.Bool}
		if met(text) {
			v.Num = 1
		}
		r.Items = append(r.Items, Item{Value: v})
	}
	return r
}

// askedOf is asked of the values of events.
func (c Call) askedOf(events []Sample) Result {
	var texts []string
	for _, v := range fieldOf(events) {
		texts = append(texts, string(v.AppendText(nil)))
	}
	return c.askedAmong(texts)
}

// askedOfSample is asked of the members of a slice. Of a value that is not among
// them, and that a sample would not have kept, it is not known whether it was met.
func (c Call) askedOfSample(s *state.WindowState) Result {
	r := c.askedAmong(s.Members)
	for i := 0; s.Bound > 0 && i < len(r.Items) && !r.Capped; i++ {
		r.Capped = r.Items[i].Value.Num == 0 && state.SampleHash(c.Members[i].AppendText(nil)) >= s.Bound
	}
	return r
}

// askedAmong is asked of the texts of the values that were met.
func (c Call) askedAmong(texts []string) Result {
	values := make(map[string]bool, len(texts))
	for _, text := range texts {
		values[text] = true
	}
	return c.asked(len(values) > 0, func(text []byte) bool { return values[string(text)] })
}
