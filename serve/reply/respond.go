package reply

import (
	"net/http"
	"strconv"
)

// Respond sends a body of JSON whole.
func Respond(w http.ResponseWriter, status int, body []byte) {
	RespondAs(w, status, "application/json", body)
}

// RespondAs sends a body of another type whole.
func RespondAs(w http.ResponseWriter, status int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if contentType == "application/json" { // it may be about persons
		header.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	// A client that went away is not a failure of the server.
	_, _ = w.Write(body)
}

// Answer makes a handler of a function that returns the JSON to respond with, or why there is none.
func Answer(body func(http.ResponseWriter, *http.Request) ([]byte, *Error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, refusal := body(w, r)
		if refusal != nil {
			Fail(w, refusal)
			return
		}
		Respond(w, http.StatusOK, answer)
	})
}

// Fail responds with an error.
func Fail(w http.ResponseWriter, e *Error) {
	FailWith(w, e.Status, AppendJSON(nil, map[string]*Error{"error": e}))
}

// FailWith responds with an error in the format of another API.
func FailWith(w http.ResponseWriter, status int, body []byte) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	Respond(w, status, body)
}
