// Package status reports on a process with any roles: whether it lives, whether it is ready, and what it has counted.
package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/serve/reply"
)

// Process is the status of a process.
type Process struct {
	Checks []Check // of /readyz, run concurrently
	// Definitions is the part of /readyz about definitions; nil leaves that out.
	Definitions func() Definitions
	// DeadLetters returns the last records that this process has set aside, latest first, for /v1/status; nil leaves
	// that out.
	DeadLetters func() []DeadLetter
	// Backfills returns the backfills of this process, for /v1/status; nil leaves that out.
	Backfills func() []Backfill
	// Gatherer is what /metrics and /v1/status show: prometheus.DefaultGatherer if nil.
	Gatherer prometheus.Gatherer
}

// Check is one condition of being ready to answer.
type Check struct {
	Name  string
	Check func(context.Context) error
}

// Health answers as long as the process is alive.
func Health(w http.ResponseWriter, _ *http.Request) {
	reply.Respond(w, http.StatusOK, []byte("{\"status\":\"ok\"}\n"))
}

// Readiness is the answer of GET /readyz.
type Readiness struct {
	Ready  bool     `json:"ready"`
	Checks []Passed `json:"checks"` // in the order of Config.Checks
	// Definitions describes the definitions in use. Refused ones do not make the process unready, because the earlier
	// ones are still in use.
	Definitions *Definitions `json:"definitions,omitempty"`
}

// Definitions describes the definitions in use.
type Definitions struct {
	Version string  `json:"version"` // a hash of their meaning
	Reload  *Reload `json:"last_reload,omitempty"`
}

// Reload is the result of loading changed definitions.
type Reload struct {
	At     time.Time `json:"at"`
	Loaded bool      `json:"loaded"`
	Error  string    `json:"error,omitempty"` // why they were refused: their findings
}

// Passed is the result of one check.
type Passed struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
	// Warning is a problem of a process that is ready, for example that one of several servers of the store does not answer.
	Warning string `json:"warning,omitempty"`
}

// readyTimeout bounds the checks of /readyz, so that a probe with a timeout of a second sees the
// reason.
const readyTimeout = 400 * time.Millisecond

// degraded is an error of a check that does not prevent the process from working.
type degraded interface {
	error
	Degraded() bool
}

// ReadyHandler answers GET /readyz. It runs all checks concurrently, each within readyTimeout or a
// shorter timeout. A stranger learns only which checks pass: messages name paths, topics and servers.
func (p Process) ReadyHandler(timeout time.Duration, stranger func(context.Context) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), min(readyTimeout, timeout))
		defer cancel()
		answer := p.readiness(ctx)
		if stranger(r.Context()) {
			answer.Definitions = nil
			for i := range answer.Checks {
				c := &answer.Checks[i]
				c.Name, c.Error, c.Warning = check, withheld(c.Error), withheld(c.Warning)
			}
		}
		status := http.StatusOK
		if !answer.Ready {
			status = http.StatusServiceUnavailable
		}
		reply.Respond(w, status, reply.AppendJSON(nil, answer))
	})
}

// check is the name of any check for a stranger, since some are of partitions.
const check = "check"

// withheld stands for a message that a stranger does not see.
func withheld(message string) string {
	if message == "" {
		return ""
	}
	return "ask with a token or a certificate of the scope operator, or see the log"
}

func (p Process) readiness(ctx context.Context) Readiness {
	answer := Readiness{Ready: true, Checks: make([]Passed, len(p.Checks))}
	var checks sync.WaitGroup
	for i, check := range p.Checks {
		checks.Go(func() { answer.Checks[i] = check.within(ctx) })
	}
	checks.Wait()
	if p.Definitions != nil {
		definitions := p.Definitions()
		answer.Definitions = &definitions
	}
	for _, check := range answer.Checks {
		if !check.Ready {
			answer.Ready = false
		}
	}
	return answer
}

// within returns the result of a check, or an error if the check did not end before the context: its requests may
// ignore the context.
func (c Check) within(ctx context.Context) Passed {
	done := make(chan Passed, 1)
	go func() { done <- c.run(ctx) }()
	select {
	case p := <-done:
		return p
	case <-ctx.Done():
	}
	select {
	case p := <-done: // the check's own result is better
		return p
	case <-time.After(readyTimeout / 8):
		return Passed{Name: c.Name, Error: "it does not answer in time"}
	}
}

func (c Check) run(ctx context.Context) (p Passed) {
	p.Name = c.Name
	// A panic here would end the process, because the handler's guard does not cover this goroutine.
	defer func() {
		if v := recover(); v != nil {
			p.Error = fmt.Sprint("panic: ", v)
		}
	}()
	err := c.Check(ctx)
	part, works := errors.AsType[degraded](err)
	switch {
	case err == nil:
	case works && part.Degraded():
		p.Warning = err.Error()
	default:
		p.Error = err.Error()
		return p
	}
	p.Ready = true
	return p
}
