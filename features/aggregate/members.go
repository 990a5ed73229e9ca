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

// asked returns the result of a call with members: whether each of them, in order, is in the window; null if that is
// unknown, which makes the result capped.
func (c Call) asked(found bool, met func(text []byte) (yes, known bool)) Result {
	r := Result{Found: found}
	var text []byte
	for _, member := range c.Members {
		text = member.AppendText(text[:0])
		var v value.Value
		if yes, known := met(text); known {
			v.Type = value.Bool
			if yes {
				v.Num = 1
			}
		}
		r.Capped = r.Capped || v.IsNull()
		r.Items = append(r.Items, Item{Value: v})
	}
	return r
}

// DoubtMembers makes null, in answers about members, what is false: events that are not known may have had the members.
func DoubtMembers(items []Item) {
	for i := range items {
		if v := &items[i].Value; v.Type == value.Bool && v.Num == 0 {
			*v = value.Value{}
		}
	}
}

// askedOf answers for the values of events.
func (c Call) askedOf(events []Sample) Result {
	var texts []string
	for _, v := range fieldOf(events) {
		texts = append(texts, string(v.AppendText(nil)))
	}
	return c.askedAmong(texts, func([]byte) bool { return true })
}

// askedOfSample answers for the members of a window state. If a value is not among them and lies outside the sample, it
// is unknown whether it occurred.
func (c Call) askedOfSample(s *state.WindowState) Result {
	return c.askedAmong(s.Members, func(text []byte) bool { return s.Bound == 0 || s.Secret.Hash(text) < s.Bound })
}

// askedAmong answers for the texts of the values in the window. Sampled reports whether a text would be among them if the
// window had it.
func (c Call) askedAmong(texts []string, sampled func(text []byte) bool) Result {
	values := make(map[string]bool, len(texts))
	for _, text := range texts {
		values[text] = true
	}
	return c.asked(len(values) > 0, func(text []byte) (yes, known bool) {
		yes = values[string(text)]
		return yes, yes || sampled(text)
	})
}
