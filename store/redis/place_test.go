package redisstore

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Thousands of partitions may be claimed and placed at once.
func TestThousandsOfPartitionsPerCall(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		const n = 4100
		b := &state.Batch{EveryShard: true, Now: 7}
		var partitions []state.Partition
		var first []state.Placement
		for id := range int32(n) {
			p := state.Partition{Topic: "many", ID: id}
			partitions = append(partitions, p)
			first = append(first, testkit.FirstPlacement(p.WithPlan("v"), 1, int64(id)))
			b.Ranges = append(b.Ranges, state.PartitionRange{Partition: p.WithPlan("v"), To: int64(id) + 5, Progress: slices.Clone(first[id].To)})
		}
		if placed, err := s.Place(ctx, first...); err != nil || placed != n {
			t.Fatalf("placed %d, error %v; want %d", placed, err, n)
		}
		apply(t, s.newWriter(), b)
		claims, err := s.Claim(ctx, partitions, state.Claimant{Version: "w"})
		if err != nil {
			t.Fatal(err)
		}
		for id, c := range claims {
			if b.Ranges[id].Behind || c.Progress[0] != (state.Position{Offset: int64(id) + 5}) || c.OwnedMs != 0 {
				t.Fatalf("partition %d: behind %v, claimed at %v, held for %d ms; want offset %d, just claimed", id, b.Ranges[id].Behind, c.Progress, c.OwnedMs, id+5)
			}
		}
		// The old plan has lost them all, and finds out.
		b.Ranges[n-1].To++
		apply(t, s.newWriter(), b)
		if slices.ContainsFunc(b.Ranges, func(r state.PartitionRange) bool { return !r.Behind }) {
			t.Error("a partition was applied by a plan that had lost it")
		}
		progress, err := s.Progress(ctx, partitions)
		if err != nil || progress[n-1][0].Offset != n-1+5 {
			t.Errorf("the last partition is at %v, error %v; want %d", progress[n-1], err, n-1+5)
		}
	})
}

// A call may have thousands of partition ranges, as once each commit interval all partitions are checked. Lua passes no
// more than 8000 values at once.
func TestThousandsOfRangesPerCall(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		const n = 8200
		b := &state.Batch{EveryShard: true, Now: 7}
		var fields []any
		for id := range int32(n) {
			p, at := state.Partition{Topic: "many", ID: id}, state.Position{Offset: int64(id)}
			fields = append(fields, progress.PositionField(p), at.String())
			b.Ranges = append(b.Ranges, state.PartitionRange{Partition: p, To: int64(id) + 5, Progress: []state.Position{at}})
		}
		key := keyspace.ProgressKey(s.tags[0])
		if err := s.redis.HSet(t.Context(), key, fields...).Err(); err != nil {
			t.Fatal(err)
		}
		apply(t, s.newWriter(), b)
		found := s.redis.HGetAll(t.Context(), key).Val()
		for id := range int64(n) {
			at, want := found[progress.PositionField(b.Ranges[id].Partition)], state.Position{Offset: id + 5}
			if b.Ranges[id].Progress[0] != want || at != want.String() {
				t.Fatalf("partition %d is at %s and reported at %v, want %v", id, at, b.Ranges[id].Progress, want)
			}
		}
	})
}

// An owner that hung with records of a log that was since truncated or recreated changes nothing when it continues, at
// any offset of the partition.
func TestRecordsOfATruncatedLogAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		const log = "aaaaaaaa"
		from := state.Position{Offset: 100, Epoch: 3, Log: log}
		at := state.NoPosition
		for _, found := range []state.Position{
			{Offset: 100, Epoch: 5, Log: log},        // truncated to before, and grown again
			{Offset: 150, Epoch: 5, Log: log},        // the same, and further
			{Offset: 100, Epoch: 3, Log: "bbbbbbbb"}, // recreated
			{Offset: 150, Epoch: 3, Log: "bbbbbbbb"},
			{Offset: 80, Epoch: 3, Log: log}, // truncated
			{Offset: 100, Epoch: -1, Log: log},
		} {
			p := state.Placement{Partition: transactions, From: []state.Position{at}, To: []state.Position{found}}
			if placed, err := s.Place(ctx, p); err != nil || placed != 1 {
				t.Fatalf("placed %d, error %v; want 1", placed, err)
			}
			b := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions, Epoch: 3, Progress: []state.Position{from}}}}
			fill(b, 0, event{offset: 199, device: "d1", user: "u1", time: 101 * day, cents: 1})
			apply(t, s.newWriter(), b)
			if !b.Ranges[0].Behind {
				t.Errorf("records from %v on were applied to a shard at %v", from, found)
			}
			at = found
		}
		checkAll(t, s, nil)

		// Further in the same log and epoch: another owner had the same records.
		found := state.Position{Offset: 150, Epoch: 3, Log: log}
		p := state.Placement{Partition: transactions, From: []state.Position{at}, To: []state.Position{found}}
		if placed, err := s.Place(ctx, p); err != nil || placed != 1 {
			t.Fatalf("placed %d, error %v; want 1", placed, err)
		}
		list := []event{{offset: 199, device: "d1", user: "u1", time: 101 * day, cents: 1}}
		b := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions, Epoch: 3, Progress: []state.Position{from}}}}
		fill(b, 0, list...)
		apply(t, s.newWriter(), b)
		if want := (state.Position{Offset: 200, Epoch: 3, Log: log}); b.Ranges[0].Behind || b.Ranges[0].Progress[0] != want {
			t.Errorf("got %+v, want the progress %v", b.Ranges[0], want)
		}
		checkAll(t, s, list)
	})
}

// A namespace of another layout is refused with advice.
func TestOlderLayout(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		s.redis.HSet(context.Background(), keyspace.LayoutKey(s.namespace), keyspace.FormatField, "2")
		want := fmt.Sprintf("namespace %q was written in layout 2, and this version of Weir reads and writes layout 15 only: "+
			"use a version that knows layout 2, or another namespace, into which the log is read from its start", s.namespace)
		if err := s.CheckLayout(context.Background()); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	})
}
