package pipeline

import (
	"context"
	"errors"
	"testing"

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
