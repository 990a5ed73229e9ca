package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Retries defines how a question is retried after a connection failed, or after a 503 that says when to retry.
type Retries struct {
	// Attempts is the greatest number of attempts; 1 never retries.
	Attempts int
	// First is the longest wait after the first attempt, Most the longest of all. Waits double, and are shortened by a
	// random part, so that many clients do not retry at once. After a 503 the wait is what its Retry-After says, and at
	// random up to half of that longer; if Retry-After is longer than Most, there is no retry.
	First, Most time.Duration
}

// DefaultRetries is the default of New.
var DefaultRetries = Retries{Attempts: 3, First: 10 * time.Millisecond, Most: 2 * time.Second}

// transient is a failure that may be retried.
type transient struct {
	err   error
	after time.Duration // not before
}

func (t *transient) Error() string { return t.err.Error() }
func (t *transient) Unwrap() error { return t.err }

// persist makes attempts until one succeeds or retrying is pointless. It does not wait beyond the
// context's deadline.
func (c *Client) persist(ctx context.Context, attempt func() ([]byte, error)) ([]byte, error) {
	for n := 1; ; n++ {
		content, err := attempt()
		var again *transient
		if !errors.As(err, &again) {
			return content, err
		}
		wait := again.after + time.Duration(c.random()*float64(max(c.retries.backoff(n), again.after/2)))
		deadline, limited := ctx.Deadline()
		if n >= c.retries.Attempts || again.after > c.retries.Most || limited && time.Until(deadline) <= wait {
			return nil, again.err
		}
		if sleep(ctx, wait) != nil {
			return nil, again.err
		}
	}
}

// backoff returns the longest wait after the nth attempt.
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

// broken wraps the failure of a connection as transient. A timeout is not: another attempt would
// take as long.
func broken(ctx context.Context, err error) error {
	var network net.Error
	if ctx.Err() != nil || errors.As(err, &network) && network.Timeout() {
		return err
	}
	return &transient{err: err}
}

// retryAfter returns the wait that a server asks for, if it is given in seconds.
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
