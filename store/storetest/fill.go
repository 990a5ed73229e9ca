package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// added is a series that some plans of these tests keep, and others do not.
var added = &state.Series{ID: "added", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 20 * day, GroupKeep: 21 * day}

// more is a series that is added later.
var more = &state.Series{ID: "more1", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 20 * day, GroupKeep: 21 * day}

// planOf keeps some series.
func planOf(version string, series ...*state.Series) *state.Plan {
	p := &state.Plan{
		Version: version, Retained: map[string]state.Retention{}, Topics: map[string][]string{},
		Generations: map[string][]state.Generation{}, Cuts: map[string]state.Cut{},
	}
	for _, s := range series {
		p.Retained[s.ID+".x"], p.Topics[s.ID+".x"] = state.Retention{Keep: s.Keep}, []string{transactions.Topic}
		if base, is := archivedBases[s]; is {
			p.Generations[base], p.Cuts[s.Cut.ID()] = []state.Generation{{Cut: s.Cut.ID()}}, *s.Cut
		}
	}
	return p
}

// filling is a namespace in which plans change, with one record for each offset.
type filling struct {
	*testing.T
	store  store.Store
	writer store.Writer
	plan   *state.Plan
	keeps  []*state.Series
	at     state.Partition
	live   []state.Position
}

// newFilling makes a namespace in which the plan v1 has applied 30 records.
func newFilling(t *testing.T, s store.Store) *filling {
	f := &filling{T: t, store: s, writer: s.NewWriter()}
	f.take("v1", events)
	f.applyLive(30)
	return f
}

// take takes the partition for a plan that keeps some series.
func (f *filling) take(version string, series ...*state.Series) {
	f.Helper()
	f.plan, f.keeps = planOf(version, series...), series
	if _, err := f.store.Register(f.Context(), state.Registration{Plan: f.plan}); err != nil {
		f.Fatal(err)
	}
	claims, err := f.store.Claim(f.Context(), []state.Partition{transactions}, state.Claimant{Version: version})
	if err != nil {
		f.Fatal(err)
	}
	f.at, f.live = transactions.WithPlan(version), claims[0].Progress
	if !f.live[0].Exists() {
		if _, err := f.store.Place(f.Context(), testkit.FirstPlacement(f.at, f.store.Shards(), 0)); err != nil {
			f.Fatal(err)
		}
		progress, err := f.store.Progress(f.Context(), []state.Partition{f.at})
		if err != nil {
			f.Fatal(err)
		}
		f.live = progress[0]
	}
}

// batch returns records of the partition, for some series.
func (f *filling) batch(under state.Partition, progress []state.Position, from, to int64, series ...*state.Series) *state.Batch {
	b := &state.Batch{Ranges: []state.PartitionRange{{Partition: under, To: to, Epoch: -1, Progress: progress}}, EveryShard: true}
	for offset := from; offset < to; offset++ {
		b.Update(0, offset, deviceAt(offset))
		for _, s := range series {
			b.Add(state.Mutation{Series: s, Tile: 100, Num: 1})
		}
	}
	return b
}

// applyLive applies live records up to an offset.
func (f *filling) applyLive(to int64) {
	f.Helper()
	b := f.batch(f.at, f.live, f.live[0].Offset, to, f.keeps...)
	b.Now = 100*day + to
	if err := f.writer.Apply(f.Context(), b); err != nil {
		f.Fatal(err)
	}
	if b.Ranges[0].Behind {
		f.Fatal("the plan does not own the partition")
	}
}

// fill finds the fill of series.
func (f *filling) fill(series ...*state.Series) *state.Fill {
	f.Helper()
	fills, err := f.store.Fills(f.Context(), f.plan)
	if err != nil {
		f.Fatal(err)
	}
	var columns []string
	for _, s := range series {
		columns = append(columns, s.ID+".x")
	}
	slices.Sort(columns)
	for _, fill := range fills {
		if slices.Equal(fill.Columns[transactions.Topic], columns) {
			return fill
		}
	}
	f.Fatalf("no fill of %v in %v", columns, fills)
	return nil
}

// partOf finds the fill that continues with a part of another one.
func (f *filling) partOf(fill *state.Fill) *state.Fill {
	f.Helper()
	fills, err := f.store.Fills(f.Context(), f.plan)
	if err != nil {
		f.Fatal(err)
	}
	for _, part := range fills {
		if part.PartOf(fill) {
			return part
		}
	}
	f.Fatalf("no part of %s in %v", fill.ID, fills)
	return nil
}

func (f *filling) look(fill *state.Fill) []state.Filling {
	f.Helper()
	fillings, err := f.store.Fillings(f.Context(), fill, []state.Partition{transactions})
	if err != nil {
		f.Fatal(err)
	}
	return fillings[0]
}

// expectLeft compares the records left to fill in each shard.
func (f *filling) expectLeft(fill *state.Fill, want ...state.OffsetRange) {
	f.Helper()
	for shard, filling := range f.look(fill) {
		if diff := cmp.Diff(want, filling.Left()); diff != "" {
			f.Errorf("offset ranges left of %s in shard %d (-want +got):\n%s", fill.ID, shard, diff)
		}
	}
}

func (f *filling) start(fill *state.Fill, from int64, since int64) {
	f.Helper()
	if err := f.store.StartFill(f.Context(), state.FillStart{Fill: fill, Partition: transactions, From: from, Since: since, Log: "log"}); err != nil {
		f.Fatal(err)
	}
}

// apply fills records.
func (f *filling) apply(fill *state.Fill, from, to int64, series ...*state.Series) {
	f.Helper()
	var progress []state.Position
	for _, filling := range f.look(fill) {
		progress = append(progress, filling.At)
	}
	b := f.batch(fill.Partition(transactions), progress, from, to, series...)
	f.applyBatch(b)
}

// applyBatch applies a batch, and reports whether it was refused.
func (f *filling) applyBatch(b *state.Batch) (behind bool) {
	f.Helper()
	if err := f.writer.Apply(f.Context(), b); err != nil {
		f.Fatal(err)
	}
	return b.Ranges[0].Behind
}

// expectCount compares how many records a series has counted over all devices.
func (f *filling) expectCount(s *state.Series, want int64) {
	f.Helper()
	var reads []state.Read
	for d := range devices {
		reads = append(reads, state.Read{Series: s, Entity: fmt.Sprint("d", d), First: 100, Last: 100})
	}
	found, err := f.store.Read(f.Context(), reads)
	if err != nil {
		f.Fatal(err)
	}
	var got int64
	for i := range found {
		for _, b := range found[i].Buckets {
			got += b.Value.Num
		}
	}
	if got != want {
		f.Errorf("%s counts %d records, want %d", s.ID, got, want)
	}
}

// expectSince checks since when a series is complete.
func (f *filling) expectSince(s *state.Series, want int64) {
	f.Helper()
	history, err := f.store.History(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	got := history.CompleteSince([]state.Retained{{Key: s.ID + ".x", Topic: transactions.Topic, Retention: state.Retention{Keep: s.Keep}, Tile: s.Tile}})
	if got != want {
		f.Errorf("%s is complete since %d, want %d", s.ID, got, want)
	}
}

// testFill checks that the series that a plan is the first to keep are filled exactly once with the records applied
// before.
func testFill(t *testing.T, open func() store.Store) {
	begin := func(t *testing.T) *filling { return newFilling(t, open()) }
	t.Run("once, while events flow", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		f.applyLive(40)
		fill := f.fill(added)
		if want := map[string][]string{transactions.Topic: {"added.x"}}; !cmp.Equal(fill.Columns, want) {
			t.Errorf("the fill has the columns %v, want %v", fill.Columns, want)
		}
		f.expectLeft(fill, state.OffsetRange{To: 30})
		f.expectSince(added, 100*day+31)
		f.start(fill, 5, 7)
		f.start(fill, 6, 9) // another process decides later: the moment is raised, and the offset stays
		f.expectLeft(fill, state.OffsetRange{From: 5, To: 30})
		var known []state.Position
		for _, filling := range f.look(fill) {
			known = append(known, filling.At)
		}
		again := f.batch(fill.Partition(transactions), slices.Clone(known), 5, 20, added)
		f.apply(fill, 5, 20, added)
		f.applyBatch(again)
		f.expectCount(added, 10+15)
		f.expectLeft(fill, state.OffsetRange{From: 20, To: 30})
		f.expectSince(added, 100*day+31)
		f.applyLive(50)
		f.apply(fill, 20, 30, added)
		f.expectLeft(fill)
		f.expectCount(added, 20+25)
		f.expectCount(events, 50)
		f.expectSince(added, 9)
		f.expectSince(events, state.MinTime)
	})
	t.Run("a first plan fills nothing", func(t *testing.T) {
		f := begin(t)
		if fills, err := f.store.Fills(t.Context(), f.plan); err != nil || len(fills) > 0 {
			t.Errorf("want no fills, got %v, error %v", fills, err)
		}
	})
	t.Run("a plan without it for a while", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.start(fill, 0, 7)
		f.apply(fill, 0, 30, added)
		f.expectSince(added, 7)
		f.applyLive(40)
		f.take("v1", events)
		f.applyLive(60)
		f.take("v2", events, added)
		f.expectSince(added, 100*day+61)
		f.applyLive(70)
		f.expectLeft(fill, state.OffsetRange{From: 40, To: 60})
		f.apply(fill, 40, 60, added)
		f.expectCount(added, 70)
		f.expectSince(added, 7)
		f.take("v1", events) // and at once back, without records in between
		f.take("v2", events, added)
		f.expectLeft(fill)
		f.expectSince(added, 7)
	})
	t.Run("another plan that has it", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		f.applyLive(40)
		f.take("v3", events, added, more)
		f.applyLive(50)
		first, second := f.fill(added), f.fill(more)
		f.expectLeft(first, state.OffsetRange{To: 30})
		f.expectLeft(second, state.OffsetRange{To: 40})
		f.start(first, 0, 1)
		f.start(second, 0, 1)
		f.apply(first, 0, 30, added)
		f.expectSince(added, 1)
		f.expectSince(more, 100*day+41)
		f.apply(second, 0, 40, more)
		f.expectCount(added, 50)
		f.expectCount(more, 50)
		f.expectSince(more, 1)
	})
	t.Run("a plan that has a part of it", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added, more)
		fill := f.fill(added, more)
		f.start(fill, 0, 1)
		f.apply(fill, 0, 10, added, more)
		var known []state.Position
		for _, filling := range f.look(fill) {
			known = append(known, filling.At)
		}
		f.take("v3", events, added)
		if !f.applyBatch(f.batch(fill.Partition(transactions), known, 10, 30, added, more)) {
			t.Error("a batch from before the change was applied")
		}
		if filling := f.look(fill)[0]; !filling.Broken || filling.Done() {
			t.Errorf("want a broken fill, got %+v", filling)
		}
		part := f.partOf(fill)
		f.expectLeft(part, state.OffsetRange{From: 10, To: 30})
		f.applyLive(40)
		f.apply(part, 10, 20, added)
		f.take("v2", events, added, more)
		f.applyLive(50)
		f.take("v1", events)
		f.applyLive(60)
		f.take("v2", events, added, more)
		f.expectLeft(part, state.OffsetRange{From: 20, To: 30}, state.OffsetRange{From: 50, To: 60})
		f.apply(part, 20, 30, added)
		f.apply(part, 50, 60, added)
		f.expectCount(added, 60)
		f.expectSince(added, 1)
		f.expectSince(more, 100*day+61)
	})
	t.Run("a plan that has a part of it takes one of two partitions", func(t *testing.T) {
		f := begin(t)
		next := state.Partition{Topic: transactions.Topic, ID: transactions.ID + 1}
		if _, err := f.store.Place(t.Context(), testkit.FirstPlacement(next.WithPlan("v1"), f.store.Shards(), 30)); err != nil {
			t.Fatal(err)
		}
		f.take("v2", events, added, more)
		if _, err := f.store.Claim(t.Context(), []state.Partition{next}, state.Claimant{Version: "v2"}); err != nil {
			t.Fatal(err)
		}
		fill := f.fill(added, more)
		f.start(fill, 0, 1)
		f.apply(fill, 0, 30, added, more)
		if err := f.store.StartFill(t.Context(), state.FillStart{Fill: fill, Partition: next, From: 30, Since: 1, Log: "log"}); err != nil {
			t.Fatal(err)
		}
		f.expectSince(added, 1)
		f.take("v3", events, added)
		f.expectSince(added, 1)
	})
	t.Run("a series that was there before", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		f.take("v3", events)
		f.take("v4", events, added, more)
		fill := f.fill(more)
		if want := map[string][]string{transactions.Topic: {"more1.x"}}; !cmp.Equal(fill.Columns, want) {
			t.Errorf("the fill has the columns %v, want %v", fill.Columns, want)
		}
	})
	t.Run("a partition that goes back", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		to := make([]state.Position, len(f.live))
		for shard := range to {
			to[shard] = state.Position{Offset: 20, Epoch: -1}
		}
		if _, err := f.store.Place(t.Context(), state.Placement{Partition: f.at, From: f.live, To: to, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		if filling := f.look(fill)[0]; !filling.Broken {
			t.Errorf("want a broken fill, got %+v", filling)
		}
	})
	t.Run("a partition that is new", func(t *testing.T) {
		f := begin(t)
		f.take("v2", events, added)
		fill := f.fill(added)
		f.start(fill, 0, 1)
		f.apply(fill, 0, 30, added)
		next := state.Partition{Topic: transactions.Topic, ID: transactions.ID + 1}
		if _, err := f.store.Claim(t.Context(), []state.Partition{next}, state.Claimant{Version: "v2"}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.store.Place(t.Context(), testkit.FirstPlacement(next.WithPlan("v2"), f.store.Shards(), 0)); err != nil {
			t.Fatal(err)
		}
		f.expectSince(added, 1)
	})
}
