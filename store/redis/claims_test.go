package redisstore

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

func TestClaims(t *testing.T) {
	ctx := context.Background()
	onEach(t, 2, func(t *testing.T, s *Store) {
		claim := func(version string, want ...state.Position) int64 {
			t.Helper()
			claims, err := s.Claim(ctx, []state.Partition{transactions}, version)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, claims[0].Progress); diff != "" {
				t.Errorf("claimed by %s: %s", version, diff)
			}
			return claims[0].OwnedMs
		}
		marks := func(want ...state.PlanEpoch) {
			t.Helper()
			h, err := s.History(ctx)
			if err != nil {
				t.Fatal(err)
			}
			sorted := cmpopts.SortSlices(func(a, b state.PlanEpoch) bool { return a.Topic+a.Version < b.Topic+b.Version })
			if diff := cmp.Diff(want, h.PlanEpochs, sorted, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		}
		mark := func(version string, last int64) state.PlanEpoch {
			return state.PlanEpoch{Topic: "transactions", Version: version, Last: last}
		}

		if held := claim("one", state.NoPosition, state.NoPosition); held != math.MaxInt64 {
			t.Errorf("no plan has had the partition, but it is held for %d ms", held)
		}
		marks()
		if n, err := s.Place(ctx, testkit.FirstPlacement(transactions.WithPlan("one"), 2, 7)); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		if n, err := s.Place(ctx, testkit.FirstPlacement(transactions.WithPlan("two"), 2, 9)); err != nil || n != 0 { // too late
			t.Fatal(n, err)
		}
		seven, ten := state.Position{Offset: 7, Epoch: -1}, state.Position{Offset: 10, Epoch: 3}
		if held := claim("one", seven, seven); held > 60_000 {
			t.Errorf("held for %d ms, want less than a minute", held)
		}
		marks(mark("one", state.MaxTime))

		b := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions.WithPlan("one"), To: 10, Epoch: 3, Progress: []state.Position{seven, seven}}}, EveryShard: true, Now: 5000}
		if err := s.newWriter().Apply(ctx, b); err != nil || b.Ranges[0].Behind {
			t.Fatal(err, b.Ranges[0])
		}
		if held := claim("two", ten, ten); held != 0 {
			t.Errorf("held for %d ms when another plan took it, want 0", held)
		}
		marks(mark("one", 5000), mark("two", state.MaxTime))
		late := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions.WithPlan("one"), To: 12, Epoch: 3, Progress: []state.Position{ten, ten}}}, EveryShard: true, Now: 6000}
		if err := s.newWriter().Apply(ctx, late); err != nil || !late.Ranges[0].Behind {
			t.Errorf("a batch of a plan that has lost the partition was applied: %v", err)
		}
		progress, err := s.Progress(ctx, []state.Partition{transactions})
		if err != nil || !slices.Equal(progress[0], []state.Position{ten, ten}) {
			t.Errorf("progress %v, %v", progress, err)
		}

		// A gap is recorded with the placement, at the newest record's timestamp or later.
		place := func(from, to state.Position, gap int64) {
			t.Helper()
			p := state.Placement{Partition: transactions.WithPlan("one"), From: []state.Position{from, from}, To: []state.Position{to, to}, Gap: gap}
			if n, err := s.Place(ctx, p); err != nil || n != 2 {
				t.Fatal(n, err)
			}
		}
		place(ten, seven, 4000)
		marks(mark(state.Gap, 5000), mark("one", 5000), mark("two", state.MaxTime))
		place(seven, ten, 8000)
		marks(mark(state.Gap, 8000), mark("one", 5000), mark("two", state.MaxTime))
		claim("two", ten, ten)
	})
}

// Of too many plans the earliest are forgotten: they merge into a gap.
func TestManyPlans(t *testing.T) {
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		if _, err := s.Place(ctx, testkit.FirstPlacement(transactions.WithPlan("v0"), s.Shards(), 0)); err != nil {
			t.Fatal(err)
		}
		for n := range int64(70) {
			at := state.Position{Offset: n, Epoch: int32(min(n, 1) - 1)}
			b := &state.Batch{
				Ranges:     []state.PartitionRange{{Partition: transactions.WithPlan(fmt.Sprint("v", n)), To: n + 1, Progress: []state.Position{at}}},
				EveryShard: true, Now: 1000 + n,
			}
			if err := s.newWriter().Apply(ctx, b); err != nil || b.Ranges[0].Behind {
				t.Fatal(err, b.Ranges[0])
			}
			if _, err := s.Claim(ctx, []state.Partition{transactions}, fmt.Sprint("v", n+1)); err != nil {
				t.Fatal(err)
			}
		}
		h, err := s.History(ctx)
		if err != nil {
			t.Fatal(err)
		}
		gap := slices.IndexFunc(h.PlanEpochs, func(e state.PlanEpoch) bool { return e.Version == state.Gap })
		// 64 past ones, the current one, and the gap, which absorbed 6.
		if len(h.PlanEpochs) != 66 || gap < 0 || h.PlanEpochs[gap].Last != 1005 {
			t.Errorf("%d plan epochs, want 66: %+v", len(h.PlanEpochs), h.PlanEpochs)
		}
	})
}

func TestSeriesUsed(t *testing.T) {
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		for version, at := range map[string]int64{"onlyA": 3000, "both": 2000} {
			for _, ms := range []int64{1000, at} {
				if _, err := s.Register(ctx, state.Registration{Plan: planOf(version), At: time.UnixMilli(ms)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		used, err := s.SeriesUsed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]time.Time{"aaaaa": time.UnixMilli(3000), "bbbbb": time.UnixMilli(2000)}, used); diff != "" {
			t.Error(diff)
		}
		// A value that does not parse is an error.
		s.redis.HSet(ctx, plansKey(s.namespace), "bad", "{")
		s.redis.HSet(ctx, usedKey(s.namespace), "bad/", "1:1")
		if _, err := s.SeriesUsed(ctx); fmt.Sprint(err) != "read the plan bad: unexpected end of JSON input" {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, plansKey(s.namespace), "bad", "{}")
		s.redis.HSet(ctx, usedKey(s.namespace), "bad/", "noon")
		if _, err := s.SeriesUsed(ctx); fmt.Sprint(err) != `plan bad was used at "noon", which is not a timestamp` {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad", "noon")
		if _, err := s.History(ctx); fmt.Sprint(err) != `the plan epoch transactions@bad ends at "noon", which is not a timestamp` {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad/3", "noon")
		want := "claim 1 partitions: " + keyspace.ProgressKey(s.tags[0]) + `: "noon" is not a position`
		if _, err := s.Claim(ctx, []state.Partition{transactions}, "bad"); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// A record dated years ahead does not keep features incomplete until then; a too late timestamp
// left by an older version, or a wrong clock, is lowered by the next claim.
func TestTimestampsFarAheadAreLimited(t *testing.T) {
	ctx := context.Background()
	onEach(t, 2, func(t *testing.T, s *Store) {
		const far, past = 4_000_000_000_000, 1_500_000_000_000
		marks := func() map[string]int64 {
			t.Helper()
			h, err := s.History(ctx)
			if err != nil {
				t.Fatal(err)
			}
			last := map[string]int64{}
			for _, e := range h.PlanEpochs {
				last[e.Topic+"@"+e.Version] = e.Last
			}
			return last
		}
		began := time.Now().UnixMilli()
		believed := func(what string, last int64) {
			t.Helper()
			ahead := state.MaxAhead.Milliseconds()
			if least, most := began+ahead-1000, time.Now().UnixMilli()+ahead+1000; last < least || last > most {
				t.Errorf("%s is %d, want a day ahead of the clock: %d to %d", what, last, least, most)
			}
		}
		if _, err := s.Place(ctx, testkit.FirstPlacement(transactions.WithPlan("one"), 2, 0)); err != nil {
			t.Fatal(err)
		}
		b := &state.Batch{Ranges: []state.PartitionRange{{Partition: transactions.WithPlan("one"), To: 1, Progress: testkit.FirstPlacement(transactions, 2, 0).To}}, EveryShard: true, Now: far}
		if err := s.newWriter().Apply(ctx, b); err != nil || b.Ranges[0].Behind {
			t.Fatal(err, b.Ranges[0])
		}
		for shard, tag := range s.tags {
			now, err := s.redis.HGet(ctx, keyspace.ProgressKey(tag), keyspace.ClockField).Int64()
			if err != nil {
				t.Fatal(err)
			}
			believed(fmt.Sprint("the newest timestamp of shard ", shard), now)
		}
		if _, err := s.Claim(ctx, []state.Partition{transactions}, "two"); err != nil {
			t.Fatal(err)
		}
		believed("the mark of a plan that is over", marks()["transactions@one"])

		for _, tag := range s.tags {
			s.redis.HSet(ctx, keyspace.ProgressKey(tag), keyspace.ClockField, far, "transactions@one", far, "logins@!", far, "logins@old", past)
		}
		if _, err := s.Claim(ctx, []state.Partition{transactions}, "three"); err != nil {
			t.Fatal(err)
		}
		after := marks()
		for _, mark := range []string{"transactions@one", "transactions@two", "logins@!"} {
			believed("the mark "+mark, after[mark])
		}
		if after["logins@old"] != past {
			t.Errorf("a mark of the past was moved to %d", after["logins@old"])
		}
		if got := after["transactions@three"]; got != state.MaxTime {
			t.Errorf("the current plan ended at %d, want no end", got)
		}
	})
}

// A series that is filled is in use until a plan without it takes its partitions, though the registrations come back from
// two days before: a plan with the series that takes the partitions again within half a day only fills what it missed.
func TestSeriesIsUsedUntilItsPartitionsAreTaken(t *testing.T) {
	ctx := context.Background()
	onEach(t, 2, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		began := time.Now()
		for _, version := range []string{"onlyA", "both", "onlyA"} {
			plan := planOf(version)
			plan.Topics = map[string]string{"aaaaa.x": "transactions", "bbbbb.x": "transactions"}
			if _, err := s.Register(ctx, state.Registration{Plan: plan}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Claim(ctx, []state.Partition{transactions}, version); err != nil {
				t.Fatal(err)
			}
		}
		s.redis.Del(ctx, usedKey(s.namespace))
		for _, version := range []string{"onlyA", "both"} {
			if _, err := s.Register(ctx, state.Registration{Plan: planOf(version), At: began.Add(-2 * garbageAfter)}); err != nil {
				t.Fatal(err)
			}
		}
		used, err := s.SeriesUsed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range []string{"aaaaa", "bbbbb"} {
			if at := used[series]; at.Before(began.Truncate(time.Millisecond)) {
				t.Errorf("series %s was last used at %v, want %v or later", series, at, began)
			}
		}
	})
}
