// Package breaker is a circuit breaker with probes: callers do not wait for a server that did not
// answer in time.
package breaker

import (
	"sync"
	"time"
)

// Breaker is the circuit breaker of one server. It begins closed.
//
//	closed     calls pass; one that the server did not answer opens it
//	open       calls are refused at once, until the next probe is due
//	half open  one probe is under way, and calls are still refused; its answer
//	           closes the breaker, its failure opens it again
//
// So no caller waits to find out whether a server still hangs.
type Breaker struct {
	Now func() time.Time // the clock; must be set

	mu      sync.Mutex
	state   state
	cause   error
	since   time.Time     // when it opened
	wait    time.Duration // until the next probe
	probeAt time.Time
}

type state uint8

const (
	closed state = iota
	open
	halfOpen
)

// firstProbe is the time before the first probe. It doubles with each probe that fails.
const firstProbe = 50 * time.Millisecond

// LongestProbe is the longest time between two probes, and the longest that one may take.
const LongestProbe = 500 * time.Millisecond

// Refusal returns since when calls are refused and why; the cause is nil if they pass.
func (b *Breaker) Refusal() (since time.Time, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == closed {
		return time.Time{}, nil
	}
	return b.since, b.cause
}

// Failed records that the server did not answer a call. It reports whether that opened the breaker; if so, the caller
// starts the probes.
func (b *Breaker) Failed(cause error) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != closed {
		return false
	}
	b.state, b.cause, b.since = open, cause, b.Now()
	b.wait = firstProbe
	b.probeAt = b.since.Add(b.wait)
	return true
}

// UntilProbe returns the time until the next probe.
func (b *Breaker) UntilProbe() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probeAt.Sub(b.Now())
}

// HalfOpen reports whether a probe is due, and marks it as under way.
func (b *Breaker) HalfOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != open || b.Now().Before(b.probeAt) {
		return false
	}
	b.state = halfOpen
	return true
}

// Probed ends the probe under way: it closes the breaker unless the probe failed.
func (b *Breaker) Probed(err error) (closes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.state, b.cause = closed, nil
		return true
	}
	b.state, b.cause = open, err
	b.wait = min(2*b.wait, LongestProbe)
	b.probeAt = b.Now().Add(b.wait)
	return false
}
