//go:build go1.25

// Timers as of Go 1.23, which synctest needs.
//go:debug asynctimerchan=0

package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// scripted sends one response after the other, and notes the time of each request.
type scripted struct {
	began time.Time
	next  []func(*http.Request) (*http.Response, error)
	asked []time.Duration // since the beginning
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, time.Since(s.began))
	answer := s.next[0]
	s.next = s.next[1:]
	return answer(r)
}

func refused(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func response(status int, retryAfter, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		header := http.Header{}
		if retryAfter != "" {
			header.Set("Retry-After", retryAfter)
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func brokenOff(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))}, nil
}

func TestRetries(t *testing.T) {
	const down = `{"error":{"code":"store_unavailable","message":"the store cannot be read"}}`
	good := response(200, "", `{"at":1,"results":[{"entity":{},"features":{"f":{"value":3}}}]}`)
	type script []func(*http.Request) (*http.Response, error)
	ms := func(list ...int) (all []time.Duration) {
		for _, n := range list {
			all = append(all, time.Duration(n)*time.Millisecond)
		}
		return all
	}
	for _, test := range []struct {
		name    string
		script  script
		retries Retries
		timeout time.Duration // of the context; 0: none
		cancel  time.Duration // when it is canceled; 0: never
		chance  float64
		asked   []time.Duration
		want    string // the error; empty for none
	}{
		{"at once", script{good}, DefaultRetries, 0, 0, 1, ms(0), ""},
		{"after connections that fail", script{refused, brokenOff, good}, DefaultRetries, 0, 0, 1, ms(0, 10, 30), ""},
		{"with half of the chance", script{refused, refused, good}, DefaultRetries, 0, 0, 0.5, ms(0, 5, 15), ""},
		{
			"never again after the last attempt", script{refused, refused, refused}, DefaultRetries, 0, 0, 0, ms(0, 0, 0),
			`Post "http://weir/v1/query": connection refused`,
		},
		{"no attempt but the first", script{refused}, Retries{Attempts: 1}, 0, 0, 1, ms(0), `Post "http://weir/v1/query": connection refused`},
		{"no retries at all", script{refused}, Retries{}, 0, 0, 1, ms(0), `Post "http://weir/v1/query": connection refused`},
		{
			"waits do not grow forever", script{refused, refused, refused, refused, good},
			Retries{Attempts: 9, First: 100 * time.Millisecond, Most: 300 * time.Millisecond}, 0, 0, 1, ms(0, 100, 300, 600, 900), "",
		},
		{"after a 503, not before it says", script{response(503, "1", down), good}, DefaultRetries, 0, 0, 0, ms(0, 1000), ""},
		{"after a 503, spread over half of what it says", script{response(503, "1", down), good}, DefaultRetries, 0, 0, 1, ms(0, 1500), ""},
		{"after a 503 that says at once", script{response(503, "0", down), good}, DefaultRetries, 0, 0, 1, ms(0, 10), ""},
		{
			"not after a 503 that does not say", script{response(503, "", down)}, DefaultRetries, 0, 0, 1, ms(0),
			"weir: the store cannot be read (store_unavailable)",
		},
		{
			"not after one that says later", script{response(503, "3", down)}, DefaultRetries, 0, 0, 1, ms(0),
			"weir: the store cannot be read (store_unavailable)",
		},
		{
			"not after the context's end", script{response(503, "1", down)}, DefaultRetries, time.Second, 0, 0, ms(0),
			"weir: the store cannot be read (store_unavailable)",
		},
		{
			"not when it is canceled meanwhile", script{response(503, "1", down)}, DefaultRetries, 0, 500 * time.Millisecond, 0, ms(0),
			"weir: the store cannot be read (store_unavailable)",
		},
		{
			"not after time has run out", script{hangs}, DefaultRetries, time.Second, 0, 1, ms(0),
			`Post "http://weir/v1/query": context deadline exceeded`,
		},
		{
			"not after what will be refused again", script{response(404, "1", `{"error":{"code":"unknown_feature","message":"there is no feature \"f\""}}`)},
			DefaultRetries, 0, 0, 1, ms(0), `weir: there is no feature "f" (unknown_feature)`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.timeout > 0 {
					var end context.CancelFunc
					ctx, end = context.WithTimeout(ctx, test.timeout)
					defer end()
				}
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, cancel)
				}
				server := &scripted{began: time.Now(), next: test.script}
				c := New("http://weir", WithHTTP(&http.Client{Transport: server}), WithRetries(test.retries))
				c.random = func() float64 { return test.chance }
				f, err := c.Feature(ctx, "f", Entity{})
				if n, _ := f.Int(); err == nil && n != 3 {
					t.Errorf("the feature is %d, want 3", n)
				}
				if text := message(err); text != test.want {
					t.Errorf("the error is %s, want %s", text, test.want)
				}
				if !slices.Equal(test.asked, server.asked) {
					t.Errorf("requests at %v, want %v", server.asked, test.asked)
				}
			})
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
