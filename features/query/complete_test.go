package query

import (
	"testing"

	"github.com/weir-stream/weir/state"
)

// An answer is complete if neither what it covers nor what it depends on begins before its
// CompleteSince. Otherwise it is incomplete.
func TestCompletenessOfAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer      Answer
		since, want int64
	}{
		"for ever":                       {Answer{From: 50, To: 90, coveredSince: 50}, state.MinTime, state.MinTime},
		"of all there ever was":          {Answer{From: state.MinTime, To: 90, coveredSince: state.MinTime}, state.MinTime, state.MinTime},
		"in time":                        {Answer{From: 50, To: 90, coveredSince: 50}, 50, 50},
		"too late":                       {Answer{From: 50, To: 90, coveredSince: 50}, 51, 51},
		"all there ever was, too late":   {Answer{From: state.MinTime, To: 90, coveredSince: state.MinTime}, 20, 20},
		"what it rests on in time":       {Answer{From: 50, To: 90, coveredSince: 30}, 30, 30},
		"what it rests on too late":      {Answer{From: 50, To: 90, coveredSince: 30}, 31, 91},
		"both too late":                  {Answer{From: 50, To: 90, coveredSince: 30}, 60, 60},
		"not yet":                        {Answer{From: 50, To: 90, coveredSince: 50}, state.MaxTime, 91},
		"not yet all there ever was":     {Answer{From: state.MinTime, To: 90, coveredSince: state.MinTime}, state.MaxTime, 91},
		"nothing but the event left out": {Answer{From: 50, To: 49, coveredSince: 30}, 31, 51},
		"not yet and nothing":            {Answer{From: 50, To: 49, coveredSince: 50}, state.MaxTime, 51},
	} {
		a := test.answer
		a.Status, a.Exact, a.since = NotFound, true, state.MinTime
		a.complete(&Completeness{since: test.since, filled: 1})
		if a.CompleteSince != test.want {
			t.Errorf("%s: complete since %d, want %d", name, a.CompleteSince, test.want)
		}
		want, whole := NotFound, a.From >= test.want
		if !whole {
			want = Incomplete
		}
		if a.Status != want || a.Exact != whole {
			t.Errorf("%s: %s, exact %v; want %s and %v", name, a.Status, a.Exact, want, whole)
		}
	}
}
