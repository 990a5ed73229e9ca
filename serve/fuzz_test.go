package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// FuzzQuery: no body makes the server fail while the store is healthy, every response is JSON, and
// an answer has the entities of its question.
func FuzzQuery(f *testing.F) {
	for _, test := range answers {
		f.Add([]byte(test.body))
	}
	for _, test := range refusals {
		f.Add([]byte(test.body))
	}
	f.Add([]byte(`{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}], "pending": [{"stream": "transaction", "event": {"i": 1e3}}]}`))
	reader := &fakeReader{states: stored()}
	h := newHandler(reader, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		reader.calls = nil
		w := do(t, h, "POST", queryPath, string(body))
		if w.Code >= 500 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("the response is not JSON: %s", w.Body)
		}
		if w.Code != http.StatusOK {
			return
		}
		var question struct{ Entities []any }
		var answer struct{ Results []struct{ Entity any } }
		if err := json.Unmarshal(body, &question); err != nil {
			t.Fatalf("the body was answered, but it is no question: %v", err)
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		var entities []any
		for _, result := range answer.Results {
			entities = append(entities, result.Entity)
		}
		if !reflect.DeepEqual(entities, question.Entities) {
			t.Fatalf("entities %v, want %v", entities, question.Entities)
		}
	})
}

// FuzzParameters: no query string makes the server fail.
func FuzzParameters(f *testing.F) {
	for _, test := range answers {
		_, parameters, _ := strings.Cut(test.target, "?")
		f.Add(parameters)
	}
	for _, test := range refusals {
		_, parameters, _ := strings.Cut(test.target, "?")
		f.Add(parameters)
	}
	reader := &fakeReader{states: stored()}
	h := newHandler(reader, nil)
	f.Fuzz(func(t *testing.T, parameters string) {
		reader.calls = nil
		for _, feature := range []string{"device_tx_7d", "typed_7d"} {
			r := httptest.NewRequest("GET", "/v1/features/"+feature, nil)
			r.URL.RawQuery = parameters
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("got %d %s, want JSON and a status below 500", w.Code, w.Body)
			}
		}
	})
}

// FuzzMembers: members are refused, or answered one by one, in their order.
func FuzzMembers(f *testing.F) {
	for _, members := range []string{`["home", "x"]`, `[7, 1.5, -0.0e1, "1.5", true, null]`, `{"pages_seen": ["\ud83d", "a"], "i_seen": []}`, `[[]]`, `[{}]`, `"a"`} {
		f.Add(members)
	}
	names := []string{"pages_seen", "i_seen", "f_seen", "d_seen", "b_seen", "t_seen", "exactly_seen", "pages_set", "pages_count"}
	h := memberHandler(f)
	f.Fuzz(func(t *testing.T, members string) {
		var list []any
		if json.Unmarshal([]byte(members), &list) != nil {
			return
		}
		for _, name := range names {
			w := do(t, h, "POST", queryPath, `{"features": ["`+name+`"], "entities": [{"user": "u1"}], "members": `+members+`}`)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%s: status %d: %s", name, w.Code, w.Body)
			}
			if w.Code != http.StatusOK {
				continue
			}
			var answer struct {
				Results []struct {
					Features map[string]struct{ Members []struct{ Member any } }
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			var got []any
			for _, m := range answer.Results[0].Features[name].Members {
				got = append(got, m.Member)
			}
			if !reflect.DeepEqual(got, list) {
				t.Fatalf("%s: the answer is about %v, want %v", name, got, list)
			}
		}
	})
}

// FuzzFeast: every request in Feast's protocol is answered, or refused as the contract says.
func FuzzFeast(f *testing.F) {
	for _, body := range []string{
		`{"features": ["v:device_tx_7d"], "entities": {"device_id": ["d1", null]}}`,
		`{"feature_service": "payment_risk", "entities": {"device_id": ["d1"], "user_id": ["u1"]}, "full_feature_names": true}`,
		`{"features": [null, ":"], "entities": {"": [], "a": [{}]}}`,
	} {
		f.Add(body)
	}
	h := newHandler(&fakeReader{states: stored()}, nil)
	f.Fuzz(func(t *testing.T, body string) {
		if w := do(t, h, "POST", feastPath, body); w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("got %d %s, want JSON and a status below 500", w.Code, w.Body)
		}
	})
}
