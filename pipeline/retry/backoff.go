// Package retry decides how long to wait before a failed call is tried again, and what to log meanwhile.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is the wait before the next of several tries: First, then twice as long each time, up to Longest, minus a
// random part of up to a half, so that many clients do not retry at once. The zero value is usual.
type Backoff struct {
	First, Longest time.Duration

	tries int
}

// usual is the wait for something that is expected to recover soon.
var usual = Backoff{First: 50 * time.Millisecond, Longest: 5 * time.Second}

// Next returns the time to wait now.
func (b *Backoff) Next() time.Duration {
	if b.Longest == 0 {
		b.First, b.Longest = usual.First, usual.Longest
	}
	wait := b.Longest
	if b.tries < 32 { // else the shift may overflow
		wait = min(b.First<<b.tries, b.Longest)
	}
	b.tries++
	return wait - rand.N(wait/2)
}

// Tried reports whether there was a try since the last Reset.
func (b *Backoff) Tried() bool { return b.tries > 0 }

// Reset starts over with First.
func (b *Backoff) Reset() { b.tries = 0 }

// Wait waits, and returns false if the context has ended.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil // both may be ready
	case <-ctx.Done():
		return false
	}
}
