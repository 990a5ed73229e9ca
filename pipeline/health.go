package pipeline

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// health holds the problems that prevent the processor from processing events.
type health struct {
	mu       sync.Mutex
	problems map[string]error // by their subject
}

func newHealth() *health { return &health{problems: make(map[string]error)} }

func (h *health) set(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems[what] = err
}

func (h *health) clear(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.problems, what)
}

// err returns all problems as one error, or nil if there are none. If the processor still works, the error has a method
// Degraded.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	degraded := true
	for what, err := range h.problems {
		d, ok := errors.AsType[interface {
			error
			Degraded() bool
		}](err)
		degraded = degraded && ok && d.Degraded()
		all = append(all, fmt.Errorf("%s: %w", what, err))
	}
	slices.SortFunc(all, func(a, b error) int {
		if a.Error() < b.Error() {
			return -1
		}
		return 1
	})
	err := errors.Join(all...)
	if err != nil && degraded {
		return degradedError{err}
	}
	return err
}

// degradedError is a problem of a processor that still works.
type degradedError struct{ error }

func (e degradedError) Unwrap() error { return e.error }
func (degradedError) Degraded() bool  { return true }
