package redisstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
)

// Of groups with different plans the one that began last takes precedence while it is in use; plans of one group are
// not rivals.
func TestRivalsBeganLater(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		began := time.UnixMilli(1_000_000)
		check := func(group, version string, begins bool, after time.Duration, want ...string) {
			t.Helper()
			rivals, err := s.Register(t.Context(), state.Registration{
				Plan: &state.Plan{Version: version}, Group: group, Begins: begins, At: began.Add(after),
			})
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
		const second, inUse = time.Second, state.RivalInUse
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
		// The same definitions over other generations of state do not count as a new plan.
		check("b", "v2.xyz", false, 5*second+inUse, "v1/a since 6s")
		check("a", "v1.xyz", false, 5*second+inUse)
	})
}

// No two plans begin at the same moment, or neither would take precedence.
func TestPlansThatStartAtTheSameTime(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		at := time.UnixMilli(1_000_000)
		for _, r := range []state.Registration{
			{Plan: &state.Plan{Version: "v1"}, Group: "a", At: at}, {Plan: &state.Plan{Version: "v2"}, Group: "b", At: at},
		} {
			if _, err := s.Register(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		list, err := s.Applying(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []Applying{
			{Group: "b", Version: "v2", Began: at.Add(time.Millisecond), Used: at}, {Group: "a", Version: "v1", Began: at, Used: at},
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("the plans that are applied differ (-want +got):\n%s", diff)
		}
	})
}

// A plan does not take partitions from one that takes precedence.
func TestClaimRespectsRivals(t *testing.T) {
	onEach(t, 2, func(t *testing.T, s *Store) {
		mine, others := transactions, state.Partition{Topic: transactions.Topic, ID: 7}
		if _, err := s.Place(t.Context(), testkit.FirstPlacement(mine.WithPlan("v1"), 2, 5), testkit.FirstPlacement(others.WithPlan("v2"), 2, 6)); err != nil {
			t.Fatal(err)
		}
		claim := func(version string, givesWayTo ...string) []state.Claim {
			t.Helper()
			claims, err := s.Claim(t.Context(), []state.Partition{mine, others}, version, givesWayTo...)
			if err != nil {
				t.Fatal(err)
			}
			return claims
		}
		claims := claim("v1", "v2", "v3")
		if c := claims[0]; c.KeptBy != "" || state.Lowest(c.Progress) != 5 {
			t.Errorf("claim of the own partition: got %+v, want offset 5, kept by no plan", c)
		}
		if c := claims[1]; c.KeptBy != "v2" || state.Highest(c.Progress) >= 0 {
			t.Errorf("claim of the rival's partition: got %+v, want it kept by v2", c)
		}
		if c := claim("v2")[1]; state.Lowest(c.Progress) != 6 || c.KeptBy != "" {
			t.Errorf("claim by the rival: got %+v, want offset 6, kept by no plan", c)
		}
		if c := claim("v1", "v3")[1]; c.KeptBy != "" || state.Lowest(c.Progress) != 6 {
			t.Errorf("claim of a partition whose plan is not a rival: got %+v, want offset 6, kept by no plan", c)
		}
	})
}

// While the master of the plans hangs, a processor that continues with its plan keeps the rivals it
// knows; one that begins waits.
func TestRegisterWithoutItsMaster(t *testing.T) {
	h := newHung(t)
	register := func(group, version string, begins bool) ([]state.Rival, error) {
		return h.Register(t.Context(), state.Registration{Plan: &state.Plan{Version: version}, Group: group, Begins: begins})
	}
	for _, group := range []string{"a", "b"} {
		if _, err := register(group, "v-"+group, true); err != nil {
			t.Fatal(err)
		}
	}
	rivals, err := register("a", "v-a", false)
	if err != nil || len(rivals) != 1 || rivals[0].Group != "b" {
		t.Fatalf("got the rivals %v, error %v; want group b", rivals, err)
	}
	m, err := h.masters.of(t.Context(), usedKey(h.namespace))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range h.cluster.Nodes {
		if node.Addr() == m.address {
			node.Pause()
		}
	}
	if again, err := register("a", "v-a", false); err != nil || !cmp.Equal(rivals, again) {
		t.Errorf("while the master hangs: got the rivals %v, error %v; want %v", again, err, rivals)
	}
	if _, err := register("a", "v-a", true); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("a plan that begins while the master hangs: got error %v, want %v", err, state.ErrUnavailable)
	}
}
