package serve

import (
	"fmt"
	"slices"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/value"
)

// members holds the values that a question names, for all its features, one after another. The answer says for each
// whether the window holds it.
type members struct {
	values []value.Value
	echoes spans // as they were sent
	ends   []int // by feature, in values
}

func (m *members) emptied() members {
	return members{emptied(m.values), m.echoes.emptied(), m.ends[:0]}
}

// of returns the bounds of the members of a feature, which may have none.
func (m *members) of(i int) (from, to int) {
	if i > 0 {
		from = m.ends[i-1]
	}
	return from, m.ends[i]
}

// readMembers reads the members: a list for all features of the question, or an object with lists for some of them.
func (q *asked) readMembers(v *fastjson.Value) error {
	lists := make([]*fastjson.Value, len(q.features))
	switch {
	case v == nil:
	case v.Type() == fastjson.TypeArray:
		for i := range lists {
			lists[i] = v
		}
	case v.Type() == fastjson.TypeObject:
		if err := q.listsByFeature(v, lists); err != nil {
			return err
		}
	default:
		return reply.Wrong("members", "a list of values, or an object with such lists by features", v)
	}
	for i, p := range q.features {
		if err := q.readMembersOf(p, lists[i]); err != nil {
			return err
		}
		q.members.ends = append(q.members.ends, len(q.members.values))
	}
	// Not earlier: the values may have moved while more were added.
	for i := range q.features {
		q.about = append(q.about, q.askedAbout(i))
	}
	return nil
}

// listsByFeature reads the lists in an object under the features' names.
func (q *asked) listsByFeature(v *fastjson.Value, lists []*fastjson.Value) (err error) {
	v.GetObject().Visit(func(name []byte, list *fastjson.Value) {
		if err != nil {
			return
		}
		i := slices.IndexFunc(q.features, func(p *preparedFeature) bool { return p.Name == string(name) })
		switch {
		case i < 0 && q.view.features[string(name)] == nil:
			err = q.view.unknownFeature(string(name))
		case i < 0:
			err = reply.Errorf(reply.NoMembers, "members are named for feature %q, which is not asked for", name).About(string(name)).At("members")
		case lists[i] != nil:
			err = reply.Duplicate(string(name), "members")
		default:
			lists[i] = list
		}
	})
	for i := range lists {
		lists[i] = reply.Given(lists[i])
	}
	return err
}

// readMembersOf reads the members that a feature is asked about; list is nil if there are none.
func (q *asked) readMembersOf(p *preparedFeature, list *fastjson.Value) error {
	refuse := func(e *reply.Error) error { return e.About(p.Name).At("members") }
	membership := p.membership
	switch {
	case list == nil && membership == aggregate.MembersRequired:
		return refuse(reply.Errorf(reply.MissingMembers, `feature %q is asked about values of %q: name them, such as "members": [%s]`,
			p.Name, p.Field, p.member.example()))
	case list == nil:
		return nil
	case membership == aggregate.NoMembers:
		return refuse(reply.Errorf(reply.NoMembers, `feature %q cannot be asked about members; name the features that can: "members": {"FEATURE": ["a"]}`, p.Name))
	case list.Type() != fastjson.TypeArray:
		return refuse(reply.Errorf(reply.WrongType, "members of feature %q must be a list of values; %s is not", p.Name, reply.Show(list)))
	}
	values := list.GetArray()
	if len(values) == 0 {
		return refuse(reply.Errorf(reply.MissingMembers, "members of feature %q must not be empty", p.Name))
	}
	if n := len(q.members.values) + len(values); n > q.limits.Values {
		return reply.TooMany(fmt.Sprintf("%d features with %d members", len(q.features), n), 1, q.limits.Values)
	}
	for i, v := range values {
		// First keep the member as sent, because fastjson unescapes in place what is read.
		from := len(q.members.echoes.bytes)
		q.members.echoes.bytes = v.MarshalTo(q.members.echoes.bytes)
		q.members.echoes.end()
		member, ok := valueOf(q.members.echoes.bytes[from:], p.member)
		if !ok {
			return refuse(reply.Errorf(reply.WrongType, "member %d of feature %q must be %s; %s is not%s", i, p.Name, p.member.want(), reply.Show(v), p.member.lostPlus(v)))
		}
		member.Str = slices.Clone(member.Str) // it points into the echoes
		q.members.values = append(q.members.values, member)
	}
	return nil
}

// example returns a value of the key in JSON.
func (k key) example() string {
	switch k.typ {
	case value.String:
		return `"a", "b"`
	case value.Bool:
		return "true"
	default:
		return "1, 2"
	}
}

// append appends the answers about members from one to another, exclusive: the value of each, in the order of the
// question, and once what they have in common. If there is no answer, each has its status and no value.
func (m *members) append(dst []byte, a *query.Answer, first, end int, covered *query.Coverages) []byte {
	dst = append(dst, `{"members":[`...)
	for i := range end - first {
		if i > 0 {
			dst = append(dst, ',')
		}
		from, to := m.echoes.bounds(first + i)
		dst = append(dst, `{"member":`...)
		dst = append(dst, m.echoes.bytes[from:to]...)
		dst = append(dst, `,"value":`...)
		if a.Items == nil {
			dst = append(dst, "null"...)
		} else {
			dst = query.AppendTyped(dst, a.Items[i].Value)
		}
		dst = append(dst, `,"status":"`...)
		dst = append(dst, a.Status...)
		dst = append(dst, `"}`...)
	}
	return a.AppendCoverage(append(dst, ']'), covered)
}
