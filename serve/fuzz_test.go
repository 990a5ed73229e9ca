package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// FuzzQuery: no body makes the server fail while the store is healthy, every
// response is JSON, and an answer has the entities of its question.
func FuzzQuery(f *testing.F) {
	for _, test := range answers {
		f.Add([]byte(test.body))
	}
	for _, test := range refusals {
		f.Add([]byte(test.body))
	}
	reader := &fakeReader{slices: stored()}
	h := newHandler(reader, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		reader.calls = nil
		w := do(t, h, "POST", query, string(body))
		if w.Code >= 500 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Fatalf("the response is no JSON: %s", w.Body)
		}
		if w.Code != http.StatusOK {
			return
		}
		var question struct{ Entities []any }
		var answer struct{ Results []struct{ Entity any } }
		if err := json.Unmarshal(body, &question); err != nil {
			t.Fatalf("answered what is no question: %v", err)
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
	reader := &fakeReader{slices: stored()}
	h := newHandler(reader, nil)
	f.Fuzz(func(t *testing.T, parameters string) {
		reader.calls = nil
		for _, feature := range []string{"device_tx_7d", "typed_7d"} {
			r := httptest.NewRequest("GET", "/v1/features/"+feature, nil)
			r.URL.RawQuery = parameters
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
	})
}
