package serve

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/state"
)

// errAway is the error of a store about a part that cannot be reached.
var errAway = fmt.Errorf("the master of d2 hangs: %w", state.ErrUnavailable)

// awayReader cannot reach the state of d2.
type awayReader struct{ *fakeReader }

func (r awayReader) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	states, err := r.fakeReader.Read(ctx, reads)
	for i := range reads {
		if reads[i].Entity == "d2" {
			states[i] = state.WindowState{Err: errAway}
		}
	}
	return states, err
}

// If a part of the store cannot be reached, its entities have a status and the others their values.
// The same holds if the state was read, but not its history.
func TestPartOfTheStoreUnavailable(t *testing.T) {
	missing := func(context.Context) (*state.History, error) {
		return &state.History{Missing: func(r *state.Read) error {
			if r.Entity == "d2" {
				return errAway
			}
			return nil
		}}, nil
	}
	for name, change := range map[string]func(*setup, *fakeReader){
		"the state":   func(c *setup, r *fakeReader) { c.Reader = awayReader{r} },
		"the history": func(c *setup, _ *fakeReader) { c.History = missing },
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			reader := &fakeReader{states: stored()}
			h := newHandler(reader, func(c *setup) { c.Registerer = registry; change(c, reader) })
			ask := func(path, body string, none string, others ...string) {
				t.Helper()
				method := "POST"
				if body == "" {
					method = "GET"
				}
				w := do(t, h, method, path, body)
				if w.Code != 200 || strings.Count(w.Body.String(), none) != 1 {
					t.Errorf("%s: got %d %s\nwant it to contain once %s", path, w.Code, w.Body, none)
				}
				for _, other := range others {
					if !strings.Contains(w.Body.String(), other) {
						t.Errorf("%s: got %s\nwant it to contain %s", path, w.Body, other)
					}
				}
			}
			const null = `{"value":null,"status":"UNAVAILABLE",`
			ask("/v1/query", `{"features":["device_tx_7d"],"entities":[{"device_id":"d1"},{"device_id":"d2"}]}`, null, `"value":`)
			ask("/v1/features/device_tx_7d?device_id=d2", "", null)
			ask("/v1/timeline/device_tx_7d?device_id=d2", "", `"points":[`+null)
			ask("/get-online-features", `{"features":["device_tx_7d"],"entities":{"device_id":["d2"]}}`,
				`"values":[null],"statuses":["OUTSIDE_MAX_AGE"]`)
			n, err := testutil.GatherAndCount(registry, "weir_unavailable_answers_total")
			if err != nil || n != 1 {
				t.Errorf("%d counters, error %v; want 1", n, err)
			}
		})
	}
}
