package pipeline

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// registered is a store that records registrations, and may refuse them.
type registered struct {
	store.Store
	last state.Registration
	err  error
}

func (s *registered) Register(_ context.Context, r state.Registration) ([]state.Rival, error) {
	s.last = r
	return nil, s.err
}

// A processor begins with definitions when it starts and each time they are loaded, even if it had them before:
// otherwise a deployment could not take precedence by a rollback. Continuing with them does not count, and neither does
// a pool of older definitions that is about to end.
func TestWhenAProcessorRegistersItsPlan(t *testing.T) {
	t.Parallel()
	parse := func(text string) *features.Registry {
		t.Helper()
		return defined.Registry(t, "streams: {s: {topic: t, timestamp: at, fields: {u: string, n: int}}}\nfeatures:\n"+text)
	}
	old, next := parse("  a: COUNT(1d, s, u)").Plan(), parse("  a: SUM(1d, s, n, u)").Plan()
	s := &registered{}
	d := newDefinitions(parse("  a: COUNT(1d, s, u)"), func(p *state.Plan) *registration {
		return &registration{store: s, plan: p, group: "g"}
	})
	check := func(p *state.Plan, begins bool) {
		t.Helper()
		_, err := d.registration(p).renew(t.Context())
		if !errors.Is(err, s.err) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(state.Registration{Plan: p, Group: "g", Begins: begins}, s.last, cmp.Comparer(func(a, b *state.Plan) bool {
			return a.Version == b.Version
		})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if d.currentRegistration() != nil {
		t.Error("a plan is registered before partitions are bound")
	}
	d.bound(old)
	s.err = errors.New("refused")
	check(old, true)
	over := &state.Plan{Version: old.Version + ".over"} // the same definitions over other state
	d.bound(over)
	s.err = nil
	check(over, true) // it has not begun yet
	check(over, false)
	d.bound(old)
	check(old, false)
	d.bound(old) // the same plan
	check(old, false)
	d.bound(next)
	check(old, false)
	check(next, true)
	check(next, false)
	d.bound(old)
	check(old, true)
	check(next, false)
}

// unbound is a store that cannot bind definitions a number of times.
type unbound struct {
	store.Store
	failures int
}

func (s *unbound) Bind(_ context.Context, p *state.Plan) (*state.Plan, *state.History, error) {
	if s.failures--; s.failures >= 0 {
		return nil, nil, errors.New("no answer")
	}
	return p, &state.History{}, nil
}

// The log says when definitions could not be bound, and when that was over.
func TestFailedBindingIsLoggedUntilItIsOver(t *testing.T) {
	t.Parallel()
	r := defined.Registry(t, "streams: {s: {topic: t, timestamp: at, fields: {u: string}}}\nfeatures:\n  a: COUNT(1d, s, u)")
	for _, test := range []struct{ failures, lines int }{{0, 0}, {1, 2}, {3, 2}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			p := &Processor{
				cfg: Config{Store: &unbound{failures: test.failures}}, log: slog.New(slog.NewTextHandler(&log, nil)), health: newHealth(),
				definitions: newDefinitions(r, func(p *state.Plan) *registration { return &registration{plan: p} }),
			}
			if p.bind(t.Context(), r) == nil {
				t.Fatal("the definitions are not bound")
			}
			if got := strings.Count(log.String(), "\n"); got != test.lines || test.lines > 0 && !strings.Contains(log.String(), "works again") {
				t.Errorf("after %d failures the log has %d lines, want %d:\n%s", test.failures, got, test.lines, &log)
			}
		})
	}
}
