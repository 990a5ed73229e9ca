package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// No two plans begin at the same moment, or neither would take precedence.
func TestPlansThatStartAtTheSameTime(t *testing.T) {
	t.Parallel()
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
		want := []progress.Applying{
			{Group: "b", Version: "v2", Began: at.Add(time.Millisecond), Used: at}, {Group: "a", Version: "v1", Began: at, Used: at},
		}
		if diff := cmp.Diff(want, list); diff != "" {
			t.Errorf("the plans that are applied differ (-want +got):\n%s", diff)
		}
	})
}

// While the master of the plans hangs, a processor that continues with its plan keeps the rivals it
// knows; one that begins waits.
func TestRegisterWithoutItsMaster(t *testing.T) {
	t.Parallel()
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
