package serve

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// A question reads the most complete generation of a series. If the history after its state shows
// that it read another one, it reads once more.
func TestMostCompleteGenerationIsRead(t *testing.T) {
	r, history := partlyKept(t)
	later, _ := r.Feature("later")
	series := later.Series[0].ID
	now := r.Plan()
	// A plan over the same definitions has a second generation of that series, filled.
	bound := &state.Plan{Version: now.Version + ".bound", Retained: maps.Clone(now.Retained), Generations: map[string][]state.Generation{series: {{}, {Number: 1}}}}
	fill := &state.Fill{ID: bound.Version, Columns: map[string][]string{}}
	for key, kept := range now.Retained {
		if strings.HasPrefix(key, series) {
			key = state.GenerationID(series, state.Generation{Number: 1}) + key[len(series):]
			bound.Retained[key] = kept
			fill.Columns["payments"] = append(fill.Columns["payments"], key)
		}
	}
	history.Plans[bound.Version] = bound
	for i := range history.PlanEpochs {
		if e := &history.PlanEpochs[i]; e.Last == state.MaxTime {
			e.Version = bound.Version
		}
	}
	history.Fills = []state.FillEpoch{{Fill: fill, Topic: "payments", Whole: true, Since: state.MinTime}}
	reader := &fakeReader{clock: noon.UnixMilli()}
	h := newHandler(reader, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) { return history, nil }
	})
	ask := func(body, want string, ids ...string) {
		t.Helper()
		reader.calls = nil
		got := do(t, h, "POST", queryPath, body).Body.String()
		var read []string
		for _, reads := range reader.calls {
			read = append(read, reads[0].Series.ID)
		}
		if !strings.Contains(got, want) || fmt.Sprint(read) != fmt.Sprint(ids) {
			t.Errorf("the generations %v were read, want %v; answer:\n%s", read, ids, got)
		}
	}
	second := state.GenerationID(series, state.Generation{Number: 1})
	ask(`{"features": ["later"], "entities": [{"user": "u1"}]}`, `"status":"NOT_FOUND"`, series, second)
	ask(`{"features": ["later"], "entities": [{"user": "u1"}]}`, `"status":"NOT_FOUND"`, second)
	history.Fills[0].Whole = false // Redis went back in time
	h = newHandler(reader, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) { return history, nil }
	})
	ask(`{"features": ["later"], "entities": [{"user": "u1"}]}`, `"status":"INCOMPLETE"`, series, series) // the first has events from before, too
}
