package serve

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/state"
)

const partly = `
streams:
  payment: {topic: payments, timestamp: at, max_future: 1m, fields: {user: string, cents: int}}
  login: {topic: logins, timestamp: at, max_future: 0s, fields: {user: string}}
features:
  always: COUNT(1d, payment, user)
  later: SUM(1d, payment, cents, user)
  logins: COUNT(1d, login, user)
  ratio: {expr: later / logins, default: 0}
`

// partlyKept is a registry and a history: payments were first read without later, logins without
// all.
func partlyKept(t *testing.T, more ...state.PlanEpoch) (*features.Registry, *state.History) {
	t.Helper()
	r := defined.Registry(t, partly)
	before := defined.Registry(t, partly[:strings.Index(partly, "  later")])
	now, then := r.Plan(), before.Plan()
	return r, &state.History{
		PlanEpochs: append([]state.PlanEpoch{
			{Topic: "payments", Version: then.Version, Last: 1532510000000},
			{Topic: "payments", Version: now.Version, Last: state.MaxTime},
			{Topic: "logins", Version: state.Gap, Last: 1532511000000},
			{Topic: "logins", Version: now.Version, Last: state.MaxTime},
		}, more...),
		Plans: map[string]*state.Plan{now.Version: now, then.Version: then},
	}
}

func TestAnswersReportCompleteSince(t *testing.T) {
	ask := func(t *testing.T, body string, more ...state.PlanEpoch) string {
		t.Helper()
		r, history := partlyKept(t, more...)
		h := newHandler(&fakeReader{clock: noon.UnixMilli()}, func(c *setup) {
			c.Registry = func() *features.Registry { return r }
			c.History = func(context.Context) (*state.History, error) { return history, nil }
		})
		return do(t, h, "POST", queryPath, body).Body.String()
	}
	all := `{"features": ["always", "later", "logins", "ratio"], "entities": [{"user": "u1"}]}`
	want := `{"at":1532520000000,"results":[{"entity":{"user":"u1"},"features":{` +
		`"always":{"value":0,"status":"NOT_FOUND","from":1532437200000,"to":1532520000000,"exact":true},` +
		`"later":{"value":0,"status":"INCOMPLETE","from":1532437200000,"to":1532520000000,"exact":false,"complete_since":1532510000001,"complete_at":1532595600000},` +
		`"logins":{"value":0,"status":"INCOMPLETE","from":1532437200000,"to":1532520000000,"exact":false,"complete_since":1532511000001,"complete_at":1532595600000},` +
		`"ratio":{"value":0,"status":"INCOMPLETE","from":1532437200000,"to":1532520000000,"exact":false,"complete_since":1532511000001,"complete_at":1532595600000}}}]}` + "\n"
	if diff := cmp.Diff(want, ask(t, all)); diff != "" {
		t.Error(diff)
	}
	// While another processor skips events, nothing in the window is certain.
	want = `{"at":1532520000000,"results":[{"entity":{"user":"u1"},"features":{` +
		`"later":{"value":0,"status":"INCOMPLETE","from":1532437200000,"to":1532520000000,"exact":false,"complete_since":1532520000000}}}]}` + "\n"
	got := ask(t, `{"features": ["later"], "entities": [{"user": "u1"}]}`, state.PlanEpoch{Topic: "payments", Version: "?", Last: state.MaxTime})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// An answer without a value has no completeness.
	want = `{"at":1532430000000,"results":[{"entity":{"user":"u1"},"features":{` +
		`"later":{"value":null,"status":"OUTSIDE_MAX_AGE","from":1532347200000,"to":1532433599999,"exact":false,"oldest":1532516400000}}}]}` + "\n"
	got = ask(t, `{"features": ["later"], "entities": [{"user": "u1"}], "at": 1532430000000}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Members, and the points of a timeline, report the same.
func TestMembersAndTimelinesReportIncompleteness(t *testing.T) {
	const definitions = `
streams:
  payment: {topic: payments, timestamp: at, max_future: 0s, fields: {user: string, shop: string}}
features:
  seen: SEEN(1d, payment, user, shop)
  count: COUNT(2h, payment, user, tile=1h)
`
	r := defined.Registry(t, definitions)
	now := r.Plan()
	history := &state.History{
		PlanEpochs: []state.PlanEpoch{
			{Topic: "payments", Version: state.Gap, Last: noon.Add(-time.Hour).UnixMilli() - 1},
			{Topic: "payments", Version: now.Version, Last: state.MaxTime},
		},
		Plans: map[string]*state.Plan{now.Version: now},
	}
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) { return history, nil }
	})
	for target, want := range map[string]string{
		"/v1/features/seen?user=u1&member=a": `{"at":1532520000000,"results":[{"entity":{"user":"u1"},"features":{"seen":{"members":[` +
			`{"member":"a","value":false,"status":"INCOMPLETE"}],"from":1532437200000,"to":1532520000000,"exact":false,"complete_since":1532516400000,"complete_at":1532599200000}}}]}`,
		"/v1/timeline/count?user=u1": `{"at":1532520000000,"points":[` +
			`{"value":0,"status":"NOT_FOUND","from":1532516400000,"to":1532519999999,"exact":true,"complete_since":1532516400000},` +
			`{"value":0,"status":"NOT_FOUND","from":1532520000000,"to":1532520000000,"exact":true,"complete_since":1532516400000}]}`,
		"/v1/timeline/count?user=u1&at=1532519999999": `{"at":1532519999999,"points":[` +
			`{"value":0,"status":"INCOMPLETE","from":1532512800000,"to":1532516399999,"exact":false,"complete_since":1532516400000},` +
			`{"value":0,"status":"NOT_FOUND","from":1532516400000,"to":1532519999999,"exact":true,"complete_since":1532516400000}]}`,
	} {
		if diff := cmp.Diff(want+"\n", do(t, h, "GET", target, "").Body.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
}

// The history is read after the state, so it includes what was applied before.
func TestHistoryIsReadAfterTheState(t *testing.T) {
	r, history := partlyKept(t)
	var order []string
	reader := &fakeReader{read: func(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
		order = append(order, "state")
		return make([]state.WindowState, len(reads)), nil
	}}
	var failure error
	h := newHandler(reader, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) {
			order = append(order, "history")
			return history, failure
		}
	})
	const body = `{"features": ["later"], "entities": [{"user": "u1"}]}`
	do(t, h, "POST", queryPath, body)
	do(t, h, "POST", queryPath, body)
	if diff := cmp.Diff([]string{"state", "history", "state"}, order); diff != "" {
		t.Error(diff)
	}

	failure = errors.New("dial tcp 10.0.0.1:6379: refused")
	h = newHandler(reader, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.History = func(context.Context) (*state.History, error) { return nil, failure }
	})
	if w := do(t, h, "POST", queryPath, body); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the store cannot be read") {
		t.Errorf("got %d %s, want 503", w.Code, w.Body)
	}
}

func TestReadinessReportsDefinitions(t *testing.T) {
	definitions := status.Definitions{Version: "abc"}
	h := newHandler(&fakeReader{}, func(c *setup) { c.Definitions = func() status.Definitions { return definitions } })
	for want, reload := range map[string]*status.Reload{
		`{"ready":true,"checks":[],"definitions":{"version":"abc"}}`:                                                                                           nil,
		`{"ready":true,"checks":[],"definitions":{"version":"abc","last_reload":{"at":"2018-07-25T12:00:00Z","loaded":true}}}`:                                 {At: noon, Loaded: true},
		`{"ready":true,"checks":[],"definitions":{"version":"abc","last_reload":{"at":"2018-07-25T12:00:00Z","loaded":false,"error":"a.yaml:1:1: bad YAML"}}}`: {At: noon, Error: "a.yaml:1:1: bad YAML"},
	} {
		definitions.Reload = reload
		w := do(t, h, "GET", "/readyz", "")
		if got := strings.TrimSpace(w.Body.String()); got != want || w.Code != http.StatusOK {
			t.Errorf("%d %s\nwant %s", w.Code, got, want)
		}
	}
}
