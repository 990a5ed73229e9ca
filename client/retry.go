package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Retries says how a question is asked again after a connection failed, or
// after a 503 that says when to.
type Retries struct {
	// Attempts is how often a question is asked at the most; 1 never asks again.
	Attempts int
	// First is the longest wait after the first attempt, Most the longest of all.
	// Waits double, and chance takes up to all of one away, so that many clients
	// do not come back at once. A 503 is waited for as long as it says, and one
	// that says longer than Most is not waited for at all.
	First, Most time.Duration
}

// DefaultRetries is how a question is asked again where New is not told how.
var DefaultRetries = Retries{Attempts: 3, First: 10 * time.Millisecond, Most: 2 * time.Second}

// transient is a failure after which another attempt may succeed.
type transient struct {
	err   error
	after time.Duration // not before
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

// persist makes attempts until one succeeds or no other would help. It does not
// wait for what the context will not see.
func (c *Client) persist(ctx context.Context, attempt func() ([]byte, error)) ([]byte, error) {
	for n := 1; ; n++ {
		content, err := attempt()
		var again *transient
		if !errors.As(err, &again) {
			return content, err
		}
		wait := again.after + time.Duration(c.random()*float64(c.retries.backoff(n)))
		deadline, limited := ctx.Deadline()
		if n >= c.retries.Attempts || again.after > c.retries.Most || limited && time.Until(deadline) <= wait {
			return nil, again.err
		}
		if sleep(ctx, wait) != nil {
			return nil, again.err
		}
	}
}

// backoff is the longest wait after the nth attempt.
func (r Retries) backoff(n int) time.Duration {
	wait := r.First
	for range n - 1 {
		if wait >= r.Most {
			break
		}
		wait *= 2
	}
	return min(wait, r.Most)
}

// broken is the failure of a connection. Time that has run out is none: another
// attempt would take as long.
func broken(ctx context.Context, err error) error {
	var network net.Error
	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
		return err
	}
	return &transient{err: err}
}

// retryAfter is after how long a server wants to be asked again, if it says it
// in seconds.
func retryAfter(r *http.Response) (time.Duration, bool) {
	seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 16)
	return time.Duration(seconds) * time.Second, err == nil
}

// sleep waits, but no longer than the context.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
