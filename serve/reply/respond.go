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
	w.WriteHeader(status)
	// A client that went away is no failure of the server's.
	_, _ = w.Write(body)
}

// Fail tells why there is no answer.
func Fail(w http.ResponseWriter, e *Error) {
	FailWith(w, e.Status, AppendJSON(nil, map[string]*Error{"error": e}))
}

// FailWith tells it in the form of another API.
func FailWith(w http.ResponseWriter, status int, body []byte) {
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	Respond(w, status, body)
}
