package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// health answers as long as the process lives.
func (h *handler) health(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, []byte("{\"status\":\"ok\"}\n"))
}

// Readiness is the answer of GET /readyz.
type Readiness struct {
	Ready  bool     `json:"ready"`
	Checks []Passed `json:"checks"` // in the order of Config.Checks
	// Definitions are those at work. One that was refused is no reason not to be
	// ready: the one before still is at work.
	Definitions *Definitions `json:"definitions,omitempty"`
}

// Definitions tells which definitions are at work.
type Definitions struct {
	Version string  `json:"version"` // a hash of what they mean
	Reload  *Reload `json:"last_reload,omitempty"`
}

// Reload is what came of definitions that have changed.
type Reload struct {
	At    time.Time `json:"at"`
	Taken bool      `json:"taken"`
	Error string    `json:"error,omitempty"` // why they were refused: their findings
}

// Passed is how one check went.
type Passed struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"`
}

// ready runs all checks at once, each within the time of a question.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), h.limits.Timeout)
	defer cancel()
	answer := Readiness{Ready: true, Checks: make([]Passed, len(h.Checks))}
	var checks sync.WaitGroup
	for i, check := range h.Checks {
		checks.Go(func() { answer.Checks[i] = check.run(ctx) })
	}
	checks.Wait()
	if h.Definitions != nil {
		definitions := h.Definitions()
		answer.Definitions = &definitions
	}
	status := http.StatusOK
	for _, check := range answer.Checks {
		if !check.Ready {
			answer.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	respond(w, status, appendJSON(nil, answer))
}

func (c Check) run(ctx context.Context) (p Passed) {
	p.Name = c.Name
	// A panic here would end the process: no request's guard stands above it.
	defer func() {
		if v := recover(); v != nil {
			p.Error = fmt.Sprint("panic: ", v)
		}
	}()
	if err := c.Check(ctx); err != nil {
		p.Error = err.Error()
		return p
	}
	p.Ready = true
	return p
}
