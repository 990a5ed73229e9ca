package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// A history that says that something was filled may be younger than the state that was read
// before it: the state is read once more, and not again until something else is filled.
func TestWhatIsFilledMeanwhileIsRead(t *testing.T) {
	r, history := partlyKept(t)
	later, _ := r.Feature("later")
	fill := &state.Fill{ID: "v2", Columns: map[string][]string{}}
	for _, u := range later.Retained() {
		fill.Columns[u.Topic] = append(fill.Columns[u.Topic], u.Key)
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
	const body = `{"features": ["later"], "entities": [{"user": "u1"}]}`
	for range 2 {
		if got := do(t, h, "POST", queryPath, body).Body.String(); !strings.Contains(got, `"status":"NOT_FOUND"`) {
			t.Errorf("what is filled is not whole: %s", got)
		}
	}
	if diff := cmp.Diff([]string{"state", "history", "state", "state"}, order); diff != "" {
		t.Error(diff)
	}
}
