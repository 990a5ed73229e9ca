package query

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// rolling100 is a feature of a window of 100 ms.
var rolling100 = &features.Feature{Window: window.Window{Type: window.Rolling{Size: 100 * time.Millisecond}, Exact: true}, Series: []*state.Series{{}}}

// An answer is complete if neither the events that it covers nor those that it depends on begin before its
// CompleteSince. Otherwise it is incomplete.
func TestCompletenessOfAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		answer      Answer
		since, want int64
	}{
		"forever":                        {Answer{From: 50, To: 90, coveredSince: 50}, state.MinTime, state.MinTime},
		"of all there ever was":          {Answer{From: state.MinTime, To: 90, coveredSince: state.MinTime}, state.MinTime, state.MinTime},
		"in time":                        {Answer{From: 50, To: 90, coveredSince: 50}, 50, 50},
		"too late":                       {Answer{From: 50, To: 90, coveredSince: 50}, 51, 51},
		"all there ever was, too late":   {Answer{From: state.MinTime, To: 90, coveredSince: state.MinTime}, 20, 20},
		"what it rests on in time":       {Answer{From: 50, To: 90, coveredSince: 30}, 30, 30},
		"what it rests on too late":      {Answer{From: 50, To: 90, coveredSince: 30}, 31, 90},
		"both too late":                  {Answer{From: 50, To: 90, coveredSince: 30}, 60, 60},
		"not yet":                        {Answer{From: 50, To: 90, coveredSince: 50}, state.MaxTime, 90},
		"not yet all there ever was":     {Answer{From: state.MinTime, To: 90, coveredSince: state.MinTime}, state.MaxTime, 90},
		"nothing but the event left out": {Answer{From: 50, To: 49, coveredSince: 30}, 31, 51},
		"not yet and nothing":            {Answer{From: 50, To: 49, coveredSince: 50}, state.MaxTime, 51},
	} {
		a := test.answer
		a.Status, a.Exact, a.since = NotFound, true, state.MinTime
		a.complete(rolling100, &Completeness{since: test.since, filled: 1})
		if a.CompleteSince != test.want {
			t.Errorf("%s: complete since %d, want %d", name, a.CompleteSince, test.want)
		}
		want, whole := NotFound, a.From >= test.want
		if !whole {
			want = Incomplete
		}
		at := int64(0)
		if !whole && test.since != state.MaxTime {
			at = test.since + 99
		}
		if a.CompleteAt != at {
			t.Errorf("%s: complete at %d, want %d", name, a.CompleteAt, at)
		}
		if a.Status != want || a.Exact != whole {
			t.Errorf("%s: %s, exact %v; want %s and %v", name, a.Status, a.Exact, want, whole)
		}
	}
}

// An answer that depends on others is complete when all of them are, if that moment is known for all. It is not known
// for state whose completeness moves with the clock.
func TestCompleteAtOfParts(t *testing.T) {
	part := func(since int64, slides bool) *Answer {
		a := &Answer{From: 50, To: 90, coveredSince: 50, since: since, slides: slides}
		a.complete(rolling100, &everything)
		return a
	}
	whole := part(50, false)
	for name, test := range map[string]struct {
		parts []*Answer
		want  int64
	}{
		"whole":           {[]*Answer{whole, whole}, 0},
		"one":             {[]*Answer{whole, part(60, false), whole}, 159},
		"the later":       {[]*Answer{part(60, false), part(70, false), part(65, false)}, 169},
		"one is unknown":  {[]*Answer{part(60, false), part(55, true)}, 0},
		"the first is":    {[]*Answer{part(55, true), part(60, false)}, 0},
		"only an unknown": {[]*Answer{part(55, true)}, 0},
	} {
		a := Answer{From: 50, To: 90, CompleteSince: state.MinTime}
		for _, p := range test.parts {
			a.restOn(p)
		}
		if a.CompleteAt != test.want {
			t.Errorf("%s: complete at %d, want %d", name, a.CompleteAt, test.want)
		}
	}
}
