package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
)

// testRegistrations checks that of groups with different plans the one that began last is a rival of the others for as long
// as it is in use, and that no two begin at once.
func testRegistrations(t *testing.T, open Open) {
	began := time.UnixMilli(1_000_000)
	begin := func(t *testing.T) func(group, version string, begins bool, after time.Duration, want ...string) {
		s := open(1, 0)
		return func(group, version string, begins bool, after time.Duration, want ...string) {
			t.Helper()
			rivals, err := s.Register(t.Context(), state.Registration{Plan: &state.Plan{Version: version}, Group: group, Begins: begins, At: began.Add(after)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range rivals {
				got = append(got, fmt.Sprint(r.Version, "/", r.Group, " since ", r.Began.Sub(began)))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rivals of %s/%s after %v (-want +got):\n%s", version, group, after, diff)
			}
		}
	}
	const second, inUse = time.Second, state.RivalInUse
	t.Run("rivals", func(t *testing.T) {
		check := begin(t)
		check("a", "v1", true, 0)
		check("b", "v1", true, second)   // the same plan
		check("b", "v2", true, 2*second) // a rolling deployment within one group
		check("b", "v1", false, 3*second)
		check("a", "v1", false, 4*second, "v2/b since 2s")
		check("b", "v2", false, 5*second)
		check("c/with a slash", "v3", true, 5*second) // at a time at which no other plan began
		check("a", "v1", false, 5*second+inUse-1, "v2/b since 2s", "v3/c/with a slash since 5s")
		check("b", "v2", false, 5*second+inUse) // v3 is no longer in use
		check("a", "v1", false, 5*second+inUse, "v2/b since 2s")
		check("a", "v1", true, 6*second) // by a clock that lags
		check("b", "v2", false, 5*second+inUse, "v1/a since 6s")
	})
	t.Run("the same definitions over other generations", func(t *testing.T) {
		check := begin(t)
		check("b", "v2", true, second)
		check("a", "v1", true, 2*second)
		check("b", "v2.xyz", false, 3*second, "v1/a since 2s")
		check("a", "v1.xyz", false, 3*second)
	})
	t.Run("at the same time", func(t *testing.T) {
		check := begin(t)
		check("a", "v1", true, 0)
		check("b", "v2", true, 0)
		check("c", "v3", true, 0)
		check("a", "v1", false, 0, "v2/b since 1ms", "v3/c since 2ms")
		check("b", "v2", false, 0, "v3/c since 2ms")
	})
}
