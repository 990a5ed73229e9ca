package ignite

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/state"
)

// Values are counted by group. Of many a sample gives an estimate.
func TestCountKeys(t *testing.T) {
	s := New(Config{Client: client(t, ignitetest.Shared(t)), Namespace: testkit.Namespace(t), Shards: 4, Slack: time.Hour, Backups: 1})
	if none, err := s.CountKeys(t.Context(), 1); err != nil || none.Keys != 0 || len(none.Groups) != 0 {
		t.Errorf("of a namespace that does not exist: %+v, error %v", none, err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	groups := map[string]int64{"aa": 1500, "bb": 500}
	b := state.Batch{Now: 1, EveryShard: true}
	partition := state.Partition{Topic: "tx"}
	from, to := make([]state.Position, 4), make([]state.Position, 4)
	for i := range from {
		from[i], to[i] = state.NoPosition, state.Position{Epoch: -1}
	}
	if _, err := s.Place(t.Context(), state.Placement{Partition: partition, From: from, To: to, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(t.Context(), []state.Partition{partition}, state.Claimant{Version: "v"})
	if err != nil {
		t.Fatal(err)
	}
	b.Ranges = []state.PartitionRange{{Partition: partition.WithPlan("v"), To: 1, Progress: claims[0].Progress}}
	for group, n := range groups {
		series := &state.Series{ID: group, Group: group, By: []string{"user"}, Measure: state.CountEvents}
		b.Series = append(b.Series, series)
		for i := range n {
			b.Update(0, 0, fmt.Append(nil, group, i))
			b.Add(state.Mutation{Series: series, Num: 1})
		}
	}
	if err := s.NewWriter().Apply(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	all, err := s.CountKeys(t.Context(), 1<<40)
	if err != nil || all.Looked != 2000 || all.Keys != all.Looked || !maps.Equal(all.Groups, groups) {
		t.Errorf("all: got %+v, error %v; want %v", all, err, groups)
	}
	some, err := s.CountKeys(t.Context(), 600)
	if err != nil || some.Looked != 600 || some.Keys < 2000 || some.Keys > 2010 { // records are among the keys
		t.Errorf("some: got %+v, error %v", some, err)
	}
	for group, n := range groups {
		if got := some.Groups[group]; got < n*8/10 || got > n*12/10 {
			t.Errorf("%d values of group %s are estimated as %d", n, group, got)
		}
	}
}
