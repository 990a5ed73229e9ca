package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Membership states whether a question may name members, that is, values of the function's field. The answer then has
// for each whether the window holds it.
type Membership uint8

// The memberships.
const (
	NoMembers       Membership = iota // questions cannot name members
	MembersOptional                   // with members, the answer is about them; without, it is the value
	MembersRequired                   // questions must name members
)

// asked returns the result of a call with members: whether each of them, in order, is in the window.
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

// askedOf answers for the values of events.
func (c Call) askedOf(events []Sample) Result {
	var texts []string
	for _, v := range fieldOf(events) {
		texts = append(texts, string(v.AppendText(nil)))
	}
	return c.askedAmong(texts)
}

// askedOfSample answers for the members of a window state. If a value is not among them and lies outside the sample, it
// is unknown whether it occurred.
func (c Call) askedOfSample(s *state.WindowState) Result {
	r := c.askedAmong(s.Members)
	for i := 0; s.Bound > 0 && i < len(r.Items) && !r.Capped; i++ {
		r.Capped = r.Items[i].Value.Num == 0 && s.Secret.Hash(c.Members[i].AppendText(nil)) >= s.Bound
	}
	return r
}

// askedAmong answers for the texts of the values in the window.
func (c Call) askedAmong(texts []string) Result {
	values := make(map[string]bool, len(texts))
	for _, text := range texts {
		values[text] = true
	}
	return c.asked(len(values) > 0, func(text []byte) bool { return values[string(text)] })
}
