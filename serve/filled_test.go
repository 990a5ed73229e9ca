package serve

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// The history may say that something was filled after the state was read: the state is then read once more, and not
// again until something else is filled.
func TestStateFilledMeanwhileIsRead(t *testing.T) {
	for _, path := range []string{"/v1/features/later?user=u1", "/v1/timeline/later?user=u1"} {
		t.Run(path, func(t *testing.T) { testStateFilledMeanwhile(t, path) })
	}
}

func testStateFilledMeanwhile(t *testing.T, path string) {
	r, history := partlyKept(t)
	later, _ := r.Feature("later")
	fill := &state.Fill{ID: "v2", Columns: map[string][]string{}}
	for _, retained := range later.Retained() {
		fill.Columns[retained.Topic] = append(fill.Columns[retained.Topic], retained.Key)
	}
	history.Fills = []state.FillEpoch{{Fill: fill, Topic: "payments", Whole: true, Since: state.MinTime}}
	var order []string
	reader := &fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		order = append(order, "state")
		return make([]state.WindowState, len(reads)), nil
	}, clock: noon.UnixMilli()}
	now := noon
	h := newHandler(reader, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
		c.History = func(context.Context) (*state.History, error) {
			order = append(order, "history")
			return history, nil
		}
	})
	for range 2 {
		if got := do(t, h, "GET", path, "").Body.String(); !strings.Contains(got, `"status":"NOT_FOUND"`) || strings.Contains(got, "INCOMPLETE") {
			t.Errorf("the filled feature is not complete: %s", got)
		}
	}
	if diff := cmp.Diff([]string{"state", "history", "state", "state"}, order); diff != "" {
		t.Error(diff)
	}
}

// While something is being filled, incomplete answers state the filled share, also those that
// depend on others.
func TestAnswersStateTheFilledShare(t *testing.T) {
	r, history := partlyKept(t)
	later, _ := r.Feature("later")
	fill := &state.Fill{ID: "v2", Columns: map[string][]string{}}
	for _, retained := range later.Retained() {
		fill.Columns[retained.Topic] = append(fill.Columns[retained.Topic], retained.Key)
	}
	history.Fills = []state.FillEpoch{{Fill: fill, Topic: "payments", Filled: 1, All: 3}}
	h := newHandler(&fakeReader{clock: noon.UnixMilli()}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) { return history, nil }
	})
	got := do(t, h, "POST", queryPath, `{"features": ["always", "later", "logins", "ratio"], "entities": [{"user": "u1"}]}`).Body.String()
	var reply struct {
		Results []struct {
			Features map[string]struct{ Filled *float64 }
		}
	}
	if err := json.Unmarshal([]byte(got), &reply); err != nil {
		t.Fatal(err)
	}
	third := 0.333
	want := map[string]struct{ Filled *float64 }{"always": {}, "later": {&third}, "logins": {}, "ratio": {&third}}
	if diff := cmp.Diff(want, reply.Results[0].Features); diff != "" {
		t.Errorf("%s\n(-want +got):\n%s", got, diff)
	}
	for name, f := range described(t, r, history, nil) {
		if diff := cmp.Diff(want[name].Filled, f.Filled); diff != "" {
			t.Errorf("%s in the catalogue (-want +got):\n%s", name, diff)
		}
	}
}
