package redisstore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// A process goes on with plans and fills that it knows while the namespace lacks them, since the master of the plans went back in
// time, and puts them back when it registers the next time.
func TestLostPlansArePutBack(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, s *Store) {
		register := func(version string) {
			t.Helper()
			if _, err := s.Register(t.Context(), state.Registration{Plan: planOf(version)}); err != nil {
				t.Fatal(err)
			}
		}
		register("onlyA")
		back := (&tested{Store: s, t: t}).SavePlans()
		register("both")
		register("onlyB")
		listed := func() map[string]string {
			fields := s.redis.HGetAll(t.Context(), plansKey(s.namespace)).Val()
			delete(fields, progress.ChangeField)
			return fields
		}
		before := listed()
		fills := func(s *Store) (n int) {
			t.Helper()
			fills, err := s.Fills(t.Context(), planOf("both"))
			if err != nil {
				t.Fatal(err)
			}
			return len(fills)
		}
		back()
		if n := fills(s); n != 1 {
			t.Errorf("a process that knows the plans has %d fills, want 1", n)
		}
		if n := fills(New(s.redis, s.namespace, 2)); n != 0 {
			t.Errorf("a process that does not has %d fills, want none", n)
		}
		register("onlyA")
		if diff := cmp.Diff(before, listed()); diff != "" {
			t.Errorf("the plans differ from those that were lost (-want +got):\n%s", diff)
		}
	})
}
