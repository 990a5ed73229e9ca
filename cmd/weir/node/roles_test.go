package node

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A processor without an API says so, and where to ask, in the form of all errors.
func TestProcessorRefusesQuestions(t *testing.T) {
	known := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, test := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"GET", "/readyz", http.StatusNoContent, ""},
		{
			"POST", "/v1/query", http.StatusNotFound,
			`{"error":{"code":"unknown_path","message":"this process does not answer \"/v1/query\": ask one with the role api"}}` + "\n",
		},
	} {
		w := httptest.NewRecorder()
		withoutQuestions(known).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), test.method, test.path, nil))
		if w.Code != test.code || w.Body.String() != test.body {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, w.Code, w.Body, test.code, test.body)
		}
	}
}
