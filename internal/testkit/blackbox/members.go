package blackbox

import (
	"encoding/json"
	"fmt"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/value"
)

// Member is the answer about one member that a question names.
type Member struct {
	Value  bool
	Status query.Status
}

// membersOf returns the members that the feature is asked about; nil if there is none.
func (c *Comparison) membersOf(f *features.Feature) []value.Value {
	if f.Membership() != aggregate.MembersRequired {
		return nil
	}
	return c.Members[f.Field]
}

// want returns the model's answer.
func (c *Comparison) want(f *features.Feature, entity string, at int64) aggregate.Result {
	if members := c.membersOf(f); members != nil {
		return c.Model.AnswerMembers(f, entity, at, members)
	}
	return c.Model.Answer(f, entity, at)
}

// name adds the members that the feature is asked about.
func (q *Question) name(f *features.Feature, members []value.Value) {
	for _, m := range members {
		if q.Members == nil {
			q.Members = map[string][]json.RawMessage{}
		}
		q.Members[f.Name] = append(q.Members[f.Name], json.RawMessage(inJSON(m)))
	}
}

// differsInMembers is Differs for an answer about members. If the answer states a false positive
// rate, a member that did not occur may be reported as one that did; see falsePositives.
func differsInMembers(got Answer, want aggregate.Result, status query.Status, exact bool) string {
	same := len(got.Members) == len(want.Items) && got.Status == status && got.Exact == exact && got.Uncertain == want.Uncertain
	for i := 0; same && i < len(want.Items); i++ {
		met := want.Items[i].Value.Num != 0
		same = got.Members[i].Value == met || !met && got.FalsePositiveRate > 0
	}
	if same {
		return ""
	}
	return fmt.Sprintf("%+v %s exact=%v uncertain=%d; want %s %s exact=%v uncertain=%d",
		got.Members, got.Status, got.Exact, got.Uncertain, listInJSON(want.Items, aggregate.List), status, exact, want.Uncertain)
}

// falsePositives counts the false positives among members, and how many the answers state to expect
// at most.
type falsePositives struct {
	found    int
	expected float64
}

func (p *falsePositives) note(got Answer, want aggregate.Result) {
	for i := 0; i < min(len(got.Members), len(want.Items)); i++ {
		if want.Items[i].Value.Num == 0 {
			p.expected += got.FalsePositiveRate
			if got.Members[i].Value {
				p.found++
			}
		}
	}
}

// problem describes false positives in excess of chance, "" for none.
func (p *falsePositives) problem() string {
	if float64(p.found) <= 10+5*p.expected {
		return ""
	}
	return fmt.Sprintf("%d members that were not met are said to be, and %.1f were to be expected", p.found, p.expected)
}
