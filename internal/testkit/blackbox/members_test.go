package blackbox

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/value"
)

// A member that occurred must be found; one that did not may be found only if the answer states a
// false positive rate.
func TestDiffersInMembers(t *testing.T) {
	want := aggregate.Result{Found: true}
	for _, met := range []int64{1, 0} {
		want.Items = append(want.Items, aggregate.Item{Value: value.Value{Type: value.Bool, Num: met}})
	}
	for _, test := range []struct {
		answer  string
		differs bool
	}{
		{`{"members": [{"value": true}, {"value": false}], "exact": true}`, false},
		{`{"members": [{"value": true}, {"value": true}], "exact": true}`, true},
		{`{"members": [{"value": false}, {"value": false}], "exact": true}`, true},
		{`{"members": [{"value": true}], "exact": true}`, true},
		{`{"members": [{"value": true}, {"value": false}], "exact": true, "uncertain": 1}`, true},
		{`{"members": [{"value": true}, {"value": true}], "exact": false, "false_positive_rate": 0.01}`, false},
		{`{"members": [{"value": false}, {"value": false}], "exact": false, "false_positive_rate": 0.01}`, true},
		{`{"members": [{"value": true}, {"value": false}], "exact": true, "false_positive_rate": 0.01}`, true},
	} {
		got := Answer{Status: query.Present}
		if err := json.Unmarshal([]byte(test.answer), &got); err != nil {
			t.Fatal(err)
		}
		if difference := differsInMembers(got, want, query.Present, got.FalsePositiveRate == 0); (difference != "") != test.differs {
			t.Errorf("%s: got the difference %q", test.answer, difference)
		}
	}
}

// More false positives than the answers state are a difference, counted over all answers.
func TestFalsePositives(t *testing.T) {
	want := aggregate.Result{Items: []aggregate.Item{{Value: value.Value{Type: value.Bool}}}}
	for _, test := range []struct {
		rate    float64
		problem bool
	}{{0.01, false}, {0.2, true}} {
		var p falsePositives
		random := rand.New(rand.NewPCG(1, 2))
		for range 10_000 {
			p.note(Answer{FalsePositiveRate: 0.01, Members: []Member{{Value: random.Float64() < test.rate}}}, want)
		}
		if problem := p.problem(); (problem != "") != test.problem {
			t.Errorf("at a rate of %g: got the problem %q", test.rate, problem)
		}
	}
}
