package values_test

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/values"
)

var (
	unused = &state.Series{ID: "unuse", Group: "users", By: []string{"user"}, Measure: state.CountEvents}
	lately = &state.Series{ID: "latel", Group: "users", By: []string{"user"}, Measure: state.CountEvents}
)

// feed is a partition that a plan applies.
type feed struct {
	t *testing.T
	w store.Writer
	r state.PartitionRange
}

// newFeed registers a plan, some time ago, and claims a partition for it if that is not long ago.
func newFeed(t *testing.T, s *values.Store, version string, id int32, keeps *state.Series, ago time.Duration) *feed {
	t.Helper()
	plan := &state.Plan{Version: version, Retained: map[string]state.Retention{keeps.ID + ".x": {}}}
	if _, err := s.Register(t.Context(), state.Registration{Plan: plan, At: time.Now().Add(-ago)}); err != nil {
		t.Fatal(err)
	}
	p := state.Partition{Topic: "tx", ID: id}
	if ago > 0 {
		return nil
	}
	if _, err := s.Place(t.Context(), state.Placement{Partition: p, From: []state.Position{state.NoPosition}, To: []state.Position{{Epoch: -1}}, Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(t.Context(), []state.Partition{p}, state.Claimant{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	return &feed{t, s.NewWriter(), state.PartitionRange{Partition: p.WithPlan(version), Progress: claims[0].Progress}}
}

// apply applies events of a user one by one, which count in some series. The definitions have only one.
func (f *feed) apply(n int, defined *state.Series, in ...*state.Series) {
	f.t.Helper()
	for range n {
		b := &state.Batch{Ranges: []state.PartitionRange{f.r}, Series: []*state.Series{defined}}
		b.Ranges[0].To = f.r.To + 1
		b.Update(0, f.r.To, []byte("u1"))
		for _, s := range in {
			b.Add(state.Mutation{Series: s, Num: 1})
		}
		if err := f.w.Apply(f.t.Context(), b); err != nil || b.Ranges[0].Behind {
			f.t.Fatalf("behind %v, error %v", b.Ranges[0].Behind, err)
		}
		f.r = b.Ranges[0]
	}
}

// Compaction drops series that were not used for a day. Series in recent use, those that nobody knows, and those that have come back
// since the list was read stay.
func TestGarbage(t *testing.T) {
	s := open(&engine{values: map[values.Key][]byte{}}, 1)
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := func(of *state.Series) (n int64) {
		t.Helper()
		read, err := s.Read(t.Context(), []state.Read{{Series: of, Entity: "u1"}})
		if err != nil || read[0].Err != nil {
			t.Fatal(err, read[0].Err)
		}
		for _, b := range read[0].Buckets {
			n += b.Value.Num
		}
		return n
	}
	unknown := &state.Series{ID: "unkno", Group: "users", By: []string{"user"}, Measure: state.CountEvents}
	newFeed(t, s, "old", 0, unused, 25*time.Hour)
	newFeed(t, s, "before", 0, lately, 23*time.Hour)
	now := newFeed(t, s, "now", 0, counted, 0)
	const n = 300
	now.apply(n, counted, counted, unused, lately, unknown)
	if got := count(unused); got > n/2 {
		t.Errorf("garbage counts %d of %d", got, n)
	}
	for _, kept := range []*state.Series{counted, lately, unknown} {
		if got := count(kept); got != n {
			t.Errorf("series %s counts %d of %d", kept.ID, got, n)
		}
	}
	left := count(unused)
	again := newFeed(t, s, "again", 1, unused, 0)
	for range n {
		again.apply(1, unused, unused)
		now.apply(1, counted, counted)
	}
	if got := count(unused); got < n || got > n+left {
		t.Errorf("a series that came back counts %d, want %d and some of the %d that were left", got, n, left)
	}
	if got := count(counted); got != 2*n {
		t.Errorf("the series that is used counts %d of %d", got, 2*n)
	}
}
