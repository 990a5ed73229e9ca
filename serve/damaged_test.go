package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// damagedKey is the error of a key whose state cannot be read.
type damagedKey struct{ error }

func (damagedKey) Key() string { return "{weir:3}abcde:d2" }

// Of two entities one is damaged: its answers say so in every format, the other one is answered, and there is a log
// line a second and a counter.
func TestDamagedEntity(t *testing.T) {
	reader := &fakeReader{states: maps.Clone(stored())}
	for _, series := range []string{"count", "sum", "nums", "maxs"} {
		reader.states[series+" d2"] = state.WindowState{Err: damagedKey{errors.New(`key "{weir:3}abcde:…": the state is damaged at byte 7`)}}
	}
	var log bytes.Buffer
	registry, now := prometheus.NewRegistry(), noon
	h := newHandler(reader, func(c *setup) {
		c.Registerer, c.Gatherer = registry, registry
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Now = func() time.Time { return now }
		c.History = func(context.Context) (*state.History, error) { return &state.History{}, nil }
	})
	ask := func(method, target, body string, wants ...string) {
		t.Helper()
		w := do(t, h, method, target, body)
		for _, want := range wants {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s %s: %d %s\nwant it to contain %s", method, target, w.Code, w.Body, want)
			}
		}
	}
	const none = `{"value":null,"status":"DAMAGED","from":1531958400000,"to":1532520000000,"exact":false}`
	ask("POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d2"}, {"device_id": "d1"}]}`,
		`{"device_tx_7d":`+none+`}`, `{"device_tx_7d":{"value":3,"status":"PRESENT"`)
	ask("GET", "/v1/features/device_tx_7d?device_id=d2", "", `{"device_tx_7d":`+none+`}`)
	ask("GET", "/v1/timeline/device_tx_7d?device_id=d2", "", `"points":[{"value":null,"status":"DAMAGED"`)
	ask("POST", "/get-online-features", `{"features": ["device_tx_7d"], "entities": {"device_id": ["d2", "d1"]}}`,
		`"values":[null,3],"statuses":["OUTSIDE_MAX_AGE","PRESENT"]`)
	if n := testutil.CollectAndCount(registry, "weir_damaged_answers_total"); n != 1 {
		t.Errorf("%d counters of damaged answers, want 1", n)
	}
	line := `key \"{weir:3}abcde:…\": the state is damaged at byte 7`
	if n := strings.Count(log.String(), line); n != 1 || !strings.Contains(log.String(), `level=DEBUG msg="it is about a key" key={weir:3}abcde:d2`) {
		t.Errorf("within a second the log has %d lines of this, want 1: %s\n%s", n, line, &log)
	}
	now = now.Add(time.Second)
	ask("GET", "/v1/features/device_tx_7d?device_id=d2", "", `{"device_tx_7d":`)
	if n := strings.Count(log.String(), line); n != 2 {
		t.Errorf("a second later the log has %d lines of it, want 2", n)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP weir_damaged_answers_total Values that answers lack because the state of their entity is damaged.
# TYPE weir_damaged_answers_total counter
weir_damaged_answers_total 11
`), "weir_damaged_answers_total"); err != nil {
		t.Error(err)
	}
}

// While processors catch up, an answer about a past moment whose state may have expired states what may be missing.
func TestQuestionDuringCatchUp(t *testing.T) {
	lag := int64(0)
	r := defined.Registry(t, derivedDefinitions)
	clock := noon.Add(-5 * time.Hour)
	h := newHandler(&fakeReader{clock: clock.UnixMilli()}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) {
			topics := []state.PlanEpoch{{Topic: "payments", Version: r.Plan().Version, Last: state.MaxTime}}
			return &state.History{Lag: &lag, Slack: time.Hour.Milliseconds(), PlanEpochs: topics, Plans: map[string]*state.Plan{r.Plan().Version: r.Plan()}}, nil
		}
	})
	for at, want := range map[string]string{
		noon.Format(time.RFC3339):  `"value":0,"status":"NOT_FOUND"`,
		clock.Format(time.RFC3339): `"value":0,"status":"INCOMPLETE"`,
	} {
		for path, body := range map[string]string{
			queryPath:                               `{"features": ["user_tx"], "entities": [{"user": "u1"}], "at": "` + at + `"}`,
			"/v1/timeline/user_tx?user=u1&at=" + at: "",
		} {
			method := "POST"
			if body == "" {
				method = "GET"
			}
			if w := do(t, h, method, path, body); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s at %s: %d %s, want %s", path, at, w.Code, w.Body, want)
			}
		}
	}
}
