package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzQuery: no body makes the server fail while the store is healthy, every
// response is JSON, and what is answered was a JSON object to begin with.
func FuzzQuery(f *testing.F) {
	for _, test := range answers {
		f.Add([]byte(test.body))
	}
	for _, test := range refusals {
		f.Add([]byte(test.body))
	}
	h := newHandler(&fakeReader{slices: stored()}, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
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
		if len(answer.Results) != len(question.Entities) {
			t.Fatalf("%d results for %d entities", len(answer.Results), len(question.Entities))
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
	h := newHandler(&fakeReader{slices: stored()}, nil)
	f.Fuzz(func(t *testing.T, parameters string) {
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
