package server

import (
	"context"
	"fmt"
	"time"
)

// Await retries ask until the server answers, and gives up at once if its process has ended.
func Await(what string, r Runner, ask func(context.Context) error) error {
	ctx, cancel := StartContext()
	defer cancel()
	ended := false
	last, ok := Poll(StartTimeout, func() (bool, string) {
		if r != nil {
			select {
			case <-r.Gone():
				ended = true
				return true, ""
			default:
			}
		}
		if err := ask(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	switch {
	case ended:
		return fmt.Errorf("%s ended while starting; its log ends:\n%s", what, r.Log())
	case !ok && r == nil:
		return fmt.Errorf("%s does not answer: %s", what, last)
	case !ok:
		return fmt.Errorf("%s does not answer: %s; its log ends:\n%s", what, last, r.Log())
	}
	return nil
}

// pollInterval is short compared with anything a server does, and long compared with a cheap
// condition.
const pollInterval = 10 * time.Millisecond

// Poll checks a condition every few milliseconds until it holds or the deadline has passed.
func Poll(deadline time.Duration, condition func() (bool, string)) (detail string, ok bool) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	end := time.NewTimer(deadline)
	defer end.Stop()
	for {
		if ok, detail = condition(); ok {
			return detail, true
		}
		select {
		case <-ticker.C:
		case <-end.C:
			return detail, false
		}
	}
}
