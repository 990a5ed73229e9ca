package storetest

import (
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
)

// testLostRecord checks that a shard which has lost its record, and not its state, is read again from the start without counting
// anything twice.
func testLostRecord(t *testing.T, s Namespace) {
	const lost = 0
	p := &pair{t, s, []int64{120, 80}}
	partitions := []state.Partition{transactions, beside}
	for _, of := range partitions {
		if _, err := s.Place(t.Context(), testkit.FirstPlacement(of, 2, 0)); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(records ...int64) *state.Batch {
		t.Helper()
		b, _ := p.batch(records...)
		if err := s.NewWriter().Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	apply(70, 30)
	next, _ := p.batch(50, 50)
	s.LoseRecord(lost)
	if err := s.NewWriter().Apply(t.Context(), next); err != nil || !next.Ranges[0].Behind || !next.Ranges[1].Behind {
		t.Fatalf("%+v, error %v; want both partitions behind", next.Ranges, err)
	}
	progress, err := s.Progress(t.Context(), partitions)
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range partitions {
		again := testkit.FirstPlacement(of, 2, 0)
		for shard := range again.From {
			if shard != lost {
				again.From[shard], again.To[shard] = progress[i][shard], progress[i][shard]
			}
		}
		if placed, err := s.Place(t.Context(), again); err != nil || placed == 0 {
			t.Fatalf("placed in %d shards, error %v", placed, err)
		}
	}
	apply(120, 80)
	p.expectAll()
}
