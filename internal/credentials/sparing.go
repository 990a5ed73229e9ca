package credentials

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// sparing asks an issuer for the same URL at most once in askedAgain: otherwise clients could make it ask arbitrarily
// often, with tokens that name unknown keys.
type sparing struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	kept map[string]*keptResponse // by URL: the few that discovery names
}

// keptResponse is a response, and when it was requested.
type keptResponse struct {
	asked    time.Time
	response *http.Response
	body     []byte
	err      error
}

const (
	askedAgain = 5 * time.Second
	// maxKeySetBytes bounds a response of the issuer, in bytes.
	maxKeySetBytes = 1 << 20
)

// awayError is the error of an issuer that does not answer properly.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

// RoundTrip returns a recent response, or sends the request.
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	url := r.URL.String()
	kept := s.kept[url]
	if kept == nil || s.now().Sub(kept.asked) >= askedAgain {
		kept = s.ask(r)
		s.kept[url] = kept
	}
	if kept.err != nil {
		return nil, &awayError{kept.err}
	}
	response := *kept.response
	response.Body = io.NopCloser(bytes.NewReader(kept.body))
	return &response, nil
}

func (s *sparing) ask(r *http.Request) *keptResponse {
	kept := &keptResponse{asked: s.now()}
	if kept.response, kept.err = s.next.RoundTrip(r); kept.err != nil {
		return kept
	}
	defer kept.response.Body.Close()
	kept.body, kept.err = io.ReadAll(io.LimitReader(kept.response.Body, maxKeySetBytes))
	if kept.err == nil && kept.response.StatusCode != http.StatusOK {
		kept.err = fmt.Errorf("%s answered %s", r.URL, kept.response.Status)
	}
	return kept
}
