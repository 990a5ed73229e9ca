package serve

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// answers are questions with their complete answers.
var answers = []struct {
	name, method, target, body string
	want                       string
	clock                      int64
}{
	{
		name: "one feature, one entity, now",
		body: `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}]}`,
		want: `{"at":1532520000000,"results":[{"entity":{"device_id":"d1"},"features":{
			"device_tx_7d":{"value":3,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "a moment in milliseconds",
		body: `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}], "at": 1532496076032}`,
		want: `{"at":1532496076032,"results":[{"entity":{"device_id":"d1"},"features":{
			"device_tx_7d":{"value":3,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "a moment as RFC 3339, with its zone and fraction",
		body: `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}], "at": "2018-07-25T13:21:16.032+08:00"}`,
		want: `{"at":1532496076032,"results":[{"entity":{"device_id":"d1"},"features":{
			"device_tx_7d":{"value":3,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "a service and features: each once, in the order asked; keys that no feature needs",
		body: `{"service": "payment_risk", "features": ["device_avg_7d", "device_tx_7d", "device_avg_7d"],
			"entities": [{"user_id": "u1", "amount": 1.50, "device_id": "d1", "tags": [null, {"a": "\u00e9\n"}]}, {"device_id": "d2", "user_id": "u2"}]}`,
		want: `{"at":1532520000000,"results":[
			{"entity":{"user_id":"u1","amount":1.50,"device_id":"d1","tags":[null,{"a":"\u00e9\n"}]},"features":{
				"device_avg_7d":{"value":41.65,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true},
				"device_tx_7d":{"value":3,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true},
				"user_last":{"value":1532496076032,"status":"PRESENT","from":null,"to":1532520000000,"exact":true},
				"device_amount_7d":{"value":166.6,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}},
			{"entity":{"device_id":"d2","user_id":"u2"},"features":{
				"device_avg_7d":{"value":null,"status":"NOT_FOUND","from":1531958400000,"to":1532520000000,"exact":true},
				"device_tx_7d":{"value":0,"status":"NOT_FOUND","from":1531958400000,"to":1532520000000,"exact":true},
				"user_last":{"value":null,"status":"NOT_FOUND","from":null,"to":1532520000000,"exact":true},
				"device_amount_7d":{"value":0,"status":"NOT_FOUND","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "an estimate, a value that is uncertain and capped, a string to escape",
		body: `{"features": ["device_cards_7d", "device_users_7d", "device_max_name_7d"], "entities": [{"device_id": "d1"}]}`,
		want: `{"at":1532520000000,"results":[{"entity":{"device_id":"d1"},"features":{
			"device_cards_7d":{"value":12345,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":false,"standard_error":0.0081},
			"device_users_7d":{"value":3,"status":"PRESENT","from":1531915200001,"to":1532520000000,"exact":false,"uncertain":2,"capped":true},
			"device_max_name_7d":{"value":"café \"\u0001�\\","status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "keys of every type, in the order of their names; escaped names and values",
		body: `{"features": ["typed_7d"], "entities": [{"\u0062": true, "d": 1666.00e-1, "i": -7.0, "s": "a\u007cb\\", "t": 1532496076032}]}`,
		want: `{"at":1532520000000,"results":[{"entity":{"\u0062":true,"d":1666.00e-1,"i":-7.0,"s":"a\u007cb\\","t":1532496076032},"features":{
			"typed_7d":{"value":1,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "one feature in the path", method: "GET", target: "/v1/features/device_tx_7d?device_id=d1&at=1532496076032",
		want: `{"at":1532496076032,"results":[{"entity":{"device_id":"d1"},"features":{
			"device_tx_7d":{"value":3,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "parameters of every type", method: "GET",
		target: "/v1/features/typed_7d?b=true&d=166.60&i=-7&s=a%7Cb%5C&t=1532496076032&at=2018-07-25T05:21:16Z",
		want: `{"at":1532496076000,"results":[{"entity":{"t":1532496076032,"s":"a|b\\","i":-7,"d":166.60,"b":true},"features":{
			"typed_7d":{"value":1,"status":"PRESENT","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "a string parameter that looks like a number", method: "GET", target: "/v1/features/device_tx_7d?device_id=17",
		want: `{"at":1532520000000,"results":[{"entity":{"device_id":"17"},"features":{
			"device_tx_7d":{"value":0,"status":"NOT_FOUND","from":1531958400000,"to":1532520000000,"exact":true}}}]}`,
	},
	{
		name: "a feature that is not kept for so long, beside one that is", clock: noon.UnixMilli(),
		body: `{"features": ["user_last", "device_tx_7d", "device_users_7d"], "entities": [{"device_id": "d1", "user_id": "u1"}], "at": 1531915199999}`,
		want: `{"at":1531915199999,"results":[{"entity":{"device_id":"d1","user_id":"u1"},"features":{
			"user_last":{"value":1532496076032,"status":"LATER_EVENTS","from":null,"to":1532520000000,"exact":false,"later_events":true},
			"device_tx_7d":{"value":null,"status":"OUTSIDE_MAX_AGE","from":1531353600000,"to":1531958399999,"exact":false,"oldest":1531915200000},
			"device_users_7d":{"value":null,"status":"OUTSIDE_MAX_AGE","from":1531310400000,"to":1531915199999,"exact":false,"oldest":1532390400000}}}]}`,
	},
	{
		name: "a lifetime has no oldest moment",
		body: `{"features": ["user_last"], "entities": [{"user_id": "u1"}], "at": 0}`,
		want: `{"at":0,"results":[{"entity":{"user_id":"u1"},"features":{
			"user_last":{"value":1532496076032,"status":"LATER_EVENTS","from":null,"to":1532520000000,"exact":false,"later_events":true}}}]}`,
	},
}

func TestAnswers(t *testing.T) {
	for _, test := range answers {
		t.Run(test.name, func(t *testing.T) {
			reader := &fakeReader{states: stored(), clock: test.clock}
			if test.method == "" {
				test.method, test.target = "POST", "/v1/query"
			}
			w := do(t, newHandler(reader, nil), test.method, test.target, test.body)
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if diff := cmp.Diff(unindent(test.want), w.Body.String()); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if !json.Valid(w.Body.Bytes()) {
				t.Errorf("the answer is not JSON")
			}
			if len(reader.calls) != 1 {
				t.Errorf("%d reads of the store, want 1", len(reader.calls))
			}
		})
	}
}

// unindent removes the line breaks from a golden answer, which is one line.
func unindent(s string) string {
	out := make([]rune, 0, len(s)+1)
	for _, r := range s {
		if r != '\n' && r != '\t' {
			out = append(out, r)
		}
	}
	return string(append(out, '\n'))
}

// Equal reads are made once: of one feature for entities with equal keys, and of features that share a series.
func TestReadsAreDeduplicated(t *testing.T) {
	reader := &fakeReader{states: stored()}
	w := do(t, newHandler(reader, nil), "POST", "/v1/query", `{"features": ["device_avg_7d", "device_amount_7d", "user_last"],
		"entities": [{"device_id": "d1", "user_id": "u1"}, {"device_id": "d1", "user_id": "u2"}, {"device_id": "d2", "user_id": "u1"}]}`)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	type read struct {
		Series, Entity string
		First, Last    int64
	}
	var got []read
	for _, r := range reader.calls[0] {
		got = append(got, read{r.Series.ID, r.Entity, r.First, r.Last})
	}
	want := []read{
		{"sum", "d1", 17731, 17737}, {"nums", "d1", 17731, 17737}, {"ever", "u1", 0, 0}, {"ever", "u2", 0, 0},
		{"sum", "d2", 17731, 17737}, {"nums", "d2", 17731, 17737},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	var answer struct {
		Results []struct {
			Features map[string]struct{ Value any }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ amount, avg, last any }{
		{166.6, 41.65, 1532496076032.0}, {166.6, 41.65, nil}, {0.0, nil, 1532496076032.0},
	} {
		f := answer.Results[i].Features
		if f["device_amount_7d"].Value != want.amount || f["device_avg_7d"].Value != want.avg || f["user_last"].Value != want.last {
			t.Errorf("entity %d: %v, want %v", i, f, want)
		}
	}
}
