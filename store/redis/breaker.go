package redisstore

import (
	"sync"
	"time"
)

// breaker is the circuit breaker of one master: callers do not wait for a master that did not
// answer in time.
//
//	closed     calls pass; one that the master gave no answer to opens it
//	open       calls are refused at once, until it is time to look again
//	half open  one probe is under way, and calls are still refused; its answer
//	           closes the breaker, its failure opens it again
//
// So no caller waits to find out whether a master still hangs.
type breaker struct {
	now func() time.Time

	mu      sync.Mutex
	state   breakerState
	cause   error
	since   time.Time     // when it opened
	wait    time.Duration // until the next probe
	probeAt time.Time
}

type breakerState uint8

const (
	breakerClosed breakerState = iota
	breakerOpen
	breakerHalfOpen
)

// firstProbe and longestProbe bound the time between two probes, which doubles.
const (
	firstProbe   = 50 * time.Millisecond
	longestProbe = 500 * time.Millisecond
)

// refusal is since when calls are refused and why; nil if they pass.
func (b *breaker) refusal() (since time.Time, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == breakerClosed {
		return time.Time{}, nil
	}
	return b.since, b.cause
}

// failed notes that the master did not answer a call. It says whether that opened the breaker: the
// caller then starts the probes.
func (b *breaker) failed(cause error) (opened bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != breakerClosed {
		return false
	}
	b.state, b.cause, b.since = breakerOpen, cause, b.now()
	b.wait = firstProbe
	b.probeAt = b.since.Add(b.wait)
	return true
}

// untilProbe is the time until the next probe.
func (b *breaker) untilProbe() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probeAt.Sub(b.now())
}

// halfOpen says whether a probe is due, which then is under way.
func (b *breaker) halfOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != breakerOpen || b.now().Before(b.probeAt) {
		return false
	}
	b.state = breakerHalfOpen
	return true
}

// probed ends the probe under way: it closes the breaker unless the probe failed.
func (b *breaker) probed(err error) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.state, b.cause = breakerClosed, nil
		return true
	}
	b.state, b.cause = breakerOpen, err
	b.wait = min(2*b.wait, longestProbe)
	b.probeAt = b.now().Add(b.wait)
	return false
}
