package serve

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

const derivedDefinitions = `
streams:
  payment: {topic: payments, timestamp: time, fields: {user: string, device: string, cents: {type: decimal, scale: 2}, status: string}}
  login: {topic: logins, timestamp: time, fields: {user: string, device: string}}
features:
  user_tx: COUNT(1d, payment, user)
  user_approved: COUNT(1d, payment, user, where='status == "approved"', keep=10m)
  device_logins: COUNT(7d, login, device)
  cents_tx: COUNT(1d, payment, cents)
  approval_rate: {expr: user_approved / user_tx, default: 0, description: approved part}
  risk: {expr: approval_rate * device_logins}
  of_cents: {expr: cents_tx + user_tx}
services:
  payment_risk: [risk, approval_rate, user_tx]
`

// askDerived asks a server of the derived definitions whose reader counts events: two in each
// series except the filtered one, which has one.
func askDerived(t *testing.T, method, target, body string) (status int, answer, reads string) {
	t.Helper()
	r := defined.Registry(t, derivedDefinitions)
	reader := &fakeReader{states: map[string]state.WindowState{}}
	for _, s := range r.Series {
		count := value.Value{Type: value.Int, Num: 2}
		if s.Where != "" {
			count.Num = 1
		}
		for _, entity := range []string{"u1", "d1", "1.5"} {
			reader.states[s.ID+" "+entity] = state.WindowState{Buckets: []state.Bucket{{Value: count}}}
		}
	}
	w := do(t, newHandler(reader, func(c *setup) { c.Registry = func() *features.Registry { return r } }), method, target, body)
	texts := [][]string{}
	for _, call := range reader.calls {
		var entities []string
		for _, read := range call {
			entities = append(entities, read.Entity)
		}
		texts = append(texts, entities)
	}
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, w.Body.String(), string(list)
}

// Parts that several features share are read once, in one round trip.
func TestDerivedFeaturesAreAnswered(t *testing.T) {
	status, got, reads := askDerived(t, "POST", queryPath,
		`{"service": "payment_risk", "features": ["user_tx"], "entities": [{"user": "u1", "device": "d1"}, {"user": "u2", "device": "d1"}]}`)
	want := `{"at":1532520000000,"results":[` +
		`{"entity":{"user":"u1","device":"d1"},"features":{` +
		`"user_tx":{"value":2,"status":"PRESENT","from":1532437200000,"to":1532520000000,"exact":true},` +
		`"risk":{"value":1,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true},` +
		`"approval_rate":{"value":0.5,"status":"PRESENT","from":1532437200000,"to":1532520000000,"exact":true}}},` +
		`{"entity":{"user":"u2","device":"d1"},"features":{` +
		`"user_tx":{"value":0,"status":"NOT_FOUND","from":1532437200000,"to":1532520000000,"exact":true},` +
		`"risk":{"value":0,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true},` +
		`"approval_rate":{"value":0,"status":"NOT_FOUND","from":1532437200000,"to":1532520000000,"exact":true}}}]}` + "\n"
	if status != http.StatusOK || got != want {
		t.Errorf("%d %s\nwant %s", status, got, want)
	}
	if want := `[["u1","u1","d1","u2","u2"]]`; reads != want {
		t.Errorf("read %s, want %s", reads, want)
	}
}

// A derived feature reaches as far back as all of its parts.
func TestDerivedFeatureOutsideMaxAge(t *testing.T) {
	status, got, reads := askDerived(t, "POST", queryPath,
		`{"features": ["risk", "user_tx"], "entities": [{"user": "u1", "device": "d1"}], "at": 1532519399999}`)
	want := `{"at":1532519399999,"results":[{"entity":{"user":"u1","device":"d1"},"features":{` +
		`"risk":{"value":null,"status":"OUTSIDE_MAX_AGE","from":1531958400000,"to":1532520000000,"exact":false,"oldest":1532519400000},` +
		`"user_tx":{"value":2,"status":"PRESENT","from":1532433600000,"to":1532519999999,"exact":true}}}]}` + "\n"
	if status != http.StatusOK || got != want || reads != `[["u1"]]` {
		t.Errorf("%d %s, read %s\nwant %s", status, got, reads, want)
	}
}

func TestDerivedFeatureByItsPath(t *testing.T) {
	status, got, reads := askDerived(t, "GET", "/v1/features/of_cents?user=u1&cents=1.50", "")
	want := `{"at":1532520000000,"results":[{"entity":{"cents":1.50,"user":"u1"},"features":{` +
		`"of_cents":{"value":4,"status":"PRESENT","from":1532437200000,"to":1532520000000,"exact":true}}}]}` + "\n"
	if status != http.StatusOK || got != want || reads != `[["1.5","u1"]]` {
		t.Errorf("%d %s, read %s\nwant %s", status, got, reads, want)
	}
}

func TestDerivedFeatureRefusesQuestions(t *testing.T) {
	for body, want := range map[string]string{
		`{"features": ["risk"], "entities": [{"user": "u1"}]}`:                         `entity 0 has no key "device" (string), which feature "risk" needs`,
		`{"features": ["of_cents"], "entities": [{"user": "u1", "cents": 0.001}]}`:     `key "cents" of entity 0 must be a decimal with up to 2 digits after the decimal point for feature "of_cents"; 0.001 is not`,
		`{"features": ["approval_rat"], "entities": [{"user": "u1", "device": "d1"}]}`: `there is no feature "approval_rat"; did you mean "approval_rate"?`,
	} {
		_, got, reads := askDerived(t, "POST", queryPath, body)
		var answer struct{ Error *reply.Error }
		if err := json.Unmarshal([]byte(got), &answer); err != nil || answer.Error == nil || answer.Error.Message != want {
			t.Errorf("%s: %s\nwant %s", body, got, want)
		}
		if reads != "[]" {
			t.Errorf("%s: read %s", body, reads)
		}
	}
}

func TestDerivedFeaturesInTheCatalogue(t *testing.T) {
	_, body, _ := askDerived(t, "GET", "/v1/features", "")
	var c catalogue.Catalogue
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatal(err)
	}
	found := map[string]catalogue.Feature{}
	for _, f := range c.Features {
		found[f.Name] = f
	}
	got := found["risk"]
	want := catalogue.Feature{
		Name: "risk", Definition: "{expr: 'approval_rate * device_logins'}", Function: "expr", Parts: []string{"approval_rate", "device_logins"},
		Keys: []catalogue.Key{{Name: "user", Type: "string"}, {Name: "device", Type: "string"}}, Keep: "10m",
	}
	for _, part := range []string{"user_approved", "user_tx", "device_logins"} {
		for _, s := range found[part].Series {
			s.SharedWith = nil
			want.Series = append(want.Series, s)
		}
	}
	shared := [][]string{{"approval_rate", "user_approved"}, {"approval_rate", "of_cents", "user_tx"}, {"device_logins"}}
	for i := range want.Series {
		want.Series[i].SharedWith = shared[i]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
