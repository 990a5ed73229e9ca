package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

const feastPath = "/get-online-features"

// feastHandler serves the fixture, and a feature with Feast's full name.
func feastHandler(reader store.Reader) http.Handler {
	return newHandler(reader, func(c *setup) {
		r := registry()
		f, _ := r.Feature("device_tx_7d")
		full := *f
		full.Name = "stats__amount"
		r.Features = append(r.Features, nil)
		copy(r.Features[7:], r.Features[6:])
		r.Features[6] = &full // sorted by name
		r.Services = append(r.Services, &features.Service{Name: "twice", Features: []*features.Feature{f, &full}})
		c.Registry = func() *features.Registry { return r }
		c.Limits.Values = 6
	})
}

func TestFeastQuestions(t *testing.T) {
	const at = `"2018-07-25T12:00:00.000Z"`
	for _, test := range []struct{ name, question, names, results string }{
		{
			"features of views", `{"features": ["any:device_tx_7d", "device_amount_7d"], "entities": {"device_id": ["d1", "d2"]}, "full_feature_names": false}`,
			`"device_id","device_tx_7d","device_amount_7d"`,
			`{"values":["d1","d2"],"statuses":["PRESENT","PRESENT"],"event_timestamps":[AT,AT]},` +
				`{"values":[3,0],"statuses":["PRESENT","NOT_FOUND"],"event_timestamps":[AT,AT]},` +
				`{"values":[166.6,0],"statuses":["PRESENT","NOT_FOUND"],"event_timestamps":[AT,AT]}`,
		},
		{
			"nulls", `{"features": ["device_tx_7d"], "feature_service": null, "full_feature_names": null, "entities": {"device_id": ["d1"]}}`,
			`"device_id","device_tx_7d"`,
			`{"values":["d1"],"statuses":["PRESENT"],"event_timestamps":[AT]},{"values":[3],"statuses":["PRESENT"],"event_timestamps":[AT]}`,
		},
		{
			"full names", `{"features": ["any:device_tx_7d", "other:device_tx_7d", "stats:amount"], "entities": {"device_id": ["d1"]}, "full_feature_names": true}`,
			`"device_id","any__device_tx_7d","other__device_tx_7d","stats__amount"`,
			`{"values":["d1"],"statuses":["PRESENT"],"event_timestamps":[AT]},` +
				strings.Repeat(`,{"values":[3],"statuses":["PRESENT"],"event_timestamps":[AT]}`, 3)[1:],
		},
		{
			"a feature that is named in full, by its short name", `{"features": ["stats:amount"], "entities": {"device_id": ["d1"]}}`,
			`"device_id","amount"`,
			`{"values":["d1"],"statuses":["PRESENT"],"event_timestamps":[AT]},{"values":[3],"statuses":["PRESENT"],"event_timestamps":[AT]}`,
		},
		{
			"a service, more keys than it needs, and keys of later versions of Feast",
			`{"feature_service": "twice", "features": ["none:none"], "entities": {"weight": [1.50], "device_id": ["d1"]}, "include_feature_view_version_metadata": false}`,
			`"device_id","weight","device_tx_7d","stats__amount"`,
			`{"values":["d1"],"statuses":["PRESENT"],"event_timestamps":[AT]},{"values":[1.50],"statuses":["PRESENT"],"event_timestamps":[AT]},` +
				strings.Repeat(`,{"values":[3],"statuses":["PRESENT"],"event_timestamps":[AT]}`, 2)[1:],
		},
		{
			"no value", `{"features": ["v:user_last"], "entities": {"user_id": ["u2"]}}`, `"user_id","user_last"`,
			`{"values":["u2"],"statuses":["PRESENT"],"event_timestamps":[AT]},{"values":[null],"statuses":["NOT_FOUND"],"event_timestamps":[AT]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := do(t, feastHandler(&fakeReader{states: stored()}), "POST", feastPath, test.question)
			want := `{"metadata":{"feature_names":[` + test.names + `]},"results":[` + strings.ReplaceAll(test.results, "AT", at) + "]}\n"
			if diff := cmp.Diff(want, w.Body.String()); diff != "" || w.Code != 200 {
				t.Errorf("status %d (-want +got):\n%s", w.Code, diff)
			}
		})
	}
}

// Fields of the event in hand come in columns, for each entity its own.
func TestFeastEventInHand(t *testing.T) {
	b := inHand(t)
	b.arrive("payments", `{"type": "payment", "at": 1532519000000, "user": "u2", "money": {"amount": 4}}`)
	for _, test := range []struct{ features, entities, want string }{
		{`"times", "devices"`, `"user": ["u1", "u1", "u2"], "event.amount": [10, 5.00, "1"]`, `[0.5,0.25,0.25] [2,2,0]`},
		{`"shared", "alike"`, `"user": ["u1", "u1"], "event.amount": [10, 20]`, `[1,2] [0,1]`},
		{`"times"`, `"user": ["u1"], "amount": [10]`, `[null]`},
		{`"times"`, `"user": ["u1"], "event.amount": [null]`, `[-1]`},
		{`"above"`, `"user": ["u1"], "event.amount": [1]`, `[null]`},
		{`"above", "times"`, `"user": ["u1", "u1"], "event.amount": [1, 1], "event.net": [7, 101]`, `[false,true] [0.05,0.05]`},
		{`"of_login"`, `"user": ["u1", null], "event.device": ["d\u00e9", "d"]`, `["dé/2",null]`},
		{`"times"`, `"user": ["u1"], "event.amount": [10], "event.user": ["u2"]`, `[0.5]`}, // which it does not read
		{`"own"`, `"user": ["u1", "u1", "u1"], "event.user": ["u1", "u2", null]`, `[true,null,null]`},
		{`"times"`, `"user": ["u1", "u1"], "event.amount": [1, "much"]`,
			`"event.amount" of entity 1 must be a decimal with up to 2 digits after the decimal point; "much" is not`},
	} {
		w := do(t, b.handler, "POST", feastPath, `{"features": [`+test.features+`], "entities": {`+test.entities+`}}`)
		var answer struct {
			Results []struct{ Values json.RawMessage }
		}
		if w.Code != http.StatusOK {
			if !strings.Contains(w.Body.String(), strings.ReplaceAll(test.want, `"`, `\\\"`)) {
				t.Errorf("%s %s: %s, want %s", test.features, test.entities, w.Body, test.want)
			}
			continue
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, column := range answer.Results[strings.Count(test.entities, "["):] {
			got = append(got, string(column.Values))
		}
		if is := strings.Join(got, " "); is != test.want {
			t.Errorf("%s %s: %s, want %s", test.features, test.entities, is, test.want)
		}
	}
}

// Columns state since when their values are complete, unless all are complete as a whole.
func TestFeastReportsCompleteSince(t *testing.T) {
	r, history := partlyKept(t)
	ask := func(now time.Time) string {
		t.Helper()
		h := newHandler(&fakeReader{}, func(c *setup) {
			c.Registry, c.Now = func() *features.Registry { return r }, func() time.Time { return now }
			c.History = func(context.Context) (*state.History, error) { return history, nil }
		})
		return do(t, h, "POST", feastPath, `{"features": ["always", "later"], "entities": {"user": ["u1", "u2"]}}`).Body.String()
	}
	want := func(at, value, status, since string) string {
		times := `"event_timestamps":["` + at + `","` + at + `"]`
		return `{"metadata":{"feature_names":["user","always","later"]},"results":[` +
			`{"values":["u1","u2"],"statuses":["PRESENT","PRESENT"],` + times + `},` +
			`{"values":[0,0],"statuses":["NOT_FOUND","NOT_FOUND"],` + times + `},` +
			`{"values":[` + value + `,` + value + `],"statuses":["` + status + `","` + status + `"],` + times + since + "}]}\n"
	}
	if diff := cmp.Diff(want("2018-07-25T12:00:00.000Z", "null", "OUTSIDE_MAX_AGE", `,"complete_since":[1532510000001,1532510000001]`), ask(noon)); diff != "" {
		t.Errorf("a window that began before the state was complete: its values are withheld (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want("2018-07-28T12:00:00.000Z", "0", "NOT_FOUND", ""), ask(noon.Add(3*day))); diff != "" {
		t.Errorf("a window that began later (-want +got):\n%s", diff)
	}
}

// Windows of one feature may begin at different moments, so that only some values are complete.
func TestColumnWithPartlyCompleteValues(t *testing.T) {
	var c column
	for _, status := range []query.Status{query.Present, query.Incomplete, query.Incomplete} {
		a := query.Answer{Status: status, CompleteSince: 7}
		c.add([]byte("1"), a.Status, 0, partialSince(&a))
	}
	const at = `"1970-01-01T00:00:00.000Z"`
	want := `{"values":[1,1,1],"statuses":["PRESENT","OUTSIDE_MAX_AGE","OUTSIDE_MAX_AGE"],"event_timestamps":[` + at + "," + at + "," + at + `],"complete_since":[null,7,7]}`
	if diff := cmp.Diff(want, string(c.append(nil))); diff != "" || c.size() != len(want)-len(`{"values":[],"statuses":[],"event_timestamps":[],"complete_since":[]}`) {
		t.Errorf("%d bytes (-want +got):\n%s", c.size(), diff)
	}
}

// Errors are strings that hold the exceptions of Feast's clients.
func TestFeastRefusals(t *testing.T) {
	for _, test := range []struct {
		name, question     string
		status             int
		class, code, wants string
	}{
		{
			"no JSON", `{"features": x}`, 400, "FeastError", "malformed_json",
			"the body is not JSON: 'x' at byte 14: a value is expected; text must be in double quotes",
		},
		{"no object", `[]`, 400, "FeastError", "wrong_type", "a question must be an object; a list is not"},
		{
			"features of the wrong type", `{"features": [1]}`, 400, "FeastError", "wrong_type",
			"features must be a list of names; 1 is not one",
		},
		{
			"rows in the place of columns", `{"features": ["v:device_tx_7d"], "entities": [{"device_id": "d1"}]}`, 400, "FeastError", "wrong_type",
			"entities must be an object with a list of values for each key; a list is not",
		},
		{
			"a value in the place of a column", `{"features": ["v:device_tx_7d"], "entities": {"device_id": "d1"}}`, 400, "FeastError", "wrong_type",
			`entities must be an object with a list of values for each key; "d1" is not one`,
		},
		{
			"a service of the wrong type", `{"feature_service": 7}`, 400, "FeastError", "wrong_type",
			"feature_service must be a name; 7 is not",
		},
		{
			"full names of the wrong type", `{"full_feature_names": 1}`, 400, "FeastError", "wrong_type",
			"full_feature_names must be true or false; 1 is not",
		},
		{
			"a key twice", `{"features": ["v:device_tx_7d"], "features": []}`, 400, "FeatureNameCollisionError", "duplicate_key",
			`key "features" appears twice in a question`,
		},
		{
			"a column twice", `{"features": ["v:device_tx_7d"], "entities": {"device_id": ["d1"], "device_id": ["d2"]}}`, 400,
			"FeatureNameCollisionError", "duplicate_key", `key "device_id" appears twice in entities`,
		},
		{
			"keys in other letters", `{"Features": ["v:device_tx_7d"], "entities": {"device_id": ["d1"]}}`, 400, "FeastError", "missing_features",
			`a question must name features or a service, such as "features": ["device_tx_7d"]`,
		},
		{
			"columns of different lengths", `{"features": ["v:device_tx_7d"], "entities": {"device_id": ["d1"], "user_id": []}}`, 400, "FeastError", "wrong_type",
			`the lists of entities must be equally long; "device_id" has 1 values, but "user_id" has 0`,
		},
		{
			"an unknown feature", `{"features": ["v:device_tx_8d"], "entities": {"device_id": ["d1"]}}`, 404, "FeatureViewNotFoundException", "unknown_feature",
			`there is no feature "device_tx_8d"; did you mean "device_tx_7d"?`,
		},
		{
			"an unknown service", `{"feature_service": "thrice", "entities": {"device_id": ["d1"]}}`, 404, "FeatureServiceNotFoundException", "unknown_service",
			`there is no service "thrice"; did you mean "twice"?`,
		},
		{
			"two features of one name", `{"features": ["a:device_tx_7d", "b:device_tx_7d"], "entities": {"device_id": ["d1"]}}`, 400,
			"FeatureNameCollisionError", "duplicate_key",
			`key "device_tx_7d" appears twice in the answer; full_feature_names tells features of different views apart`,
		},
		{
			"no features", `{"entities": {"device_id": ["d1"]}}`, 400, "FeastError", "missing_features",
			`a question must name features or a service, such as "features": ["device_tx_7d"]`,
		},
		{
			"no entities", `{"features": ["v:device_tx_7d"], "entities": {}}`, 400, "RequestDataNotFoundInEntityRowsException", "missing_entities",
			"entities must not be empty",
		},
		{
			"a key too few", `{"features": ["v:device_tx_7d"], "entities": {"user_id": ["u1"]}}`, 400, "RequestDataNotFoundInEntityRowsException", "missing_key",
			`entity 0 has no key "device_id" (string), which feature "device_tx_7d" needs`,
		},
		{
			"too many entities", `{"features": ["v:device_tx_7d"], "entities": {"device_id": [1, 2, 3, 4, 5, 6, 7]}}`, 413, "FeastError", "too_many_values",
			"1 features for 7 entities are more than the 6 values that one question may ask for",
		},
		{
			"too many values", `{"features": ["v:device_tx_7d", "v:device_avg_7d"], "entities": {"device_id": [1, 2, 3, 4]}}`, 413, "FeastError", "too_many_values",
			"2 features for 4 entities are more than the 6 values that one question may ask for",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := do(t, feastHandler(&fakeReader{}), "POST", feastPath, test.question)
			checkFeastError(t, w.Body.Bytes(), map[string]string{
				"module": "feast.errors", "class": test.class, "message": test.wants, "code": test.code,
			})
			if w.Code != test.status {
				t.Errorf("status %d, want %d", w.Code, test.status)
			}
		})
	}
	w := do(t, feastHandler(&fakeReader{err: errors.New("down")}), "POST", feastPath, `{"features": ["v:device_tx_7d"], "entities": {"device_id": ["d1"]}}`)
	checkFeastError(t, w.Body.Bytes(), map[string]string{
		"module": "feast.errors", "class": "FeastError", "code": "store_unavailable",
		"message": "the store cannot be read; the server's log has the details",
	})
	if w.Code != 503 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("status %d, Retry-After %q; want 503 and 1", w.Code, w.Header().Get("Retry-After"))
	}
}

func checkFeastError(t *testing.T, body []byte, want map[string]string) {
	t.Helper()
	var detail string
	if err := json.Unmarshal(body, &detail); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	got := map[string]string{}
	if err := json.Unmarshal([]byte(detail), &got); err != nil {
		t.Fatalf("%v: %s", err, detail)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
