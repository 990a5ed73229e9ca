package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// events counts a device's events, one tile for all time.
var events = &state.Series{ID: "count", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}

// plan keeps that series.
func plan(version string) *state.Plan {
	return &state.Plan{Version: version, Retained: map[string]state.Retention{events.ID + ".x": {Keep: events.Keep}}}
}

// owner applies records of a partition under a plan; each record is an event of a device of its
// own.
type owner struct {
	*testing.T
	store    store.Store
	writer   store.Writer
	at       state.Partition
	progress []state.Position
}

const devices = 6 // by offset

func newOwner(t *testing.T, s store.Store, version string) *owner {
	t.Helper()
	ctx := t.Context()
	o := &owner{T: t, store: s, writer: s.NewWriter(), at: transactions.WithPlan(version)}
	if _, err := s.Register(ctx, state.Registration{Plan: plan(version)}); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(ctx, []state.Partition{transactions}, state.Claimant{Version: version})
	if err != nil {
		t.Fatal(err)
	}
	if !claims[0].Progress[0].Exists() {
		if _, err := s.Place(ctx, testkit.FirstPlacement(o.at, s.Shards(), 0)); err != nil {
			t.Fatal(err)
		}
	}
	o.look()
	return o
}

// look reads the store's progress.
func (o *owner) look() {
	o.Helper()
	progress, err := o.store.Progress(o.Context(), []state.Partition{o.at})
	if err != nil {
		o.Fatal(err)
	}
	o.progress = progress[0]
}

// batch returns the records from one offset to another.
func (o *owner) batch(from, to int64) *state.Batch {
	b := &state.Batch{Now: 100 * day, Ranges: []state.PartitionRange{{Partition: o.at, To: to, Progress: slices.Clone(o.progress)}}}
	for offset := from; offset < to; offset++ {
		b.Update(0, offset, fmt.Appendf(nil, "d%d", offset%devices))
		b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	}
	return b
}

// apply applies a batch, and reports whether it was refused.
func (o *owner) apply(b *state.Batch) (behind bool) {
	o.Helper()
	if err := o.writer.Apply(o.Context(), b); err != nil {
		o.Fatal(err)
	}
	return b.Ranges[0].Behind
}

// expect compares the counts with those of the records before an offset.
func (o *owner) expect(what string, records int64) {
	o.Helper()
	var reads []state.Read
	want := make([]int64, devices)
	for d := range devices {
		reads = append(reads, state.Read{Series: events, Entity: fmt.Sprint("d", d), First: 100, Last: 100})
	}
	for offset := range records {
		want[offset%devices]++
	}
	found, err := o.store.Read(o.Context(), reads)
	if err != nil {
		o.Fatal(err)
	}
	got := make([]int64, devices)
	for i := range found {
		for _, b := range found[i].Buckets {
			got[i] += b.Value.Num
		}
	}
	if !slices.Equal(got, want) {
		o.Errorf("%s: the events were counted %v times, want %v", what, got, want)
	}
}

// testProgress checks that events count once: repeated ones change nothing, and an owner that has lost a partition no
// longer writes.
func testProgress(t *testing.T, open func() store.Store) {
	t.Run("what comes again", func(t *testing.T) {
		o := newOwner(t, open(), "v1")
		again, longer := o.batch(0, 30), o.batch(0, 60)
		o.apply(o.batch(0, 30))
		o.expect("a batch", 30)
		o.apply(again)
		o.expect("the same again", 30)
		o.apply(longer)
		o.expect("cut otherwise", 60)
		o.apply(o.batch(0, 60)) // by an owner that still has the progress of the start
		o.expect("all of it again", 60)
	})
	t.Run("a store that has gone back", func(t *testing.T) {
		o := newOwner(t, open(), "v1")
		for shard := range o.progress {
			o.progress[shard].Offset = 90
		}
		if !o.apply(o.batch(90, 120)) {
			t.Error("a batch was applied by a store that has lost confirmed progress")
		}
		o.expect("nothing", 0)
	})
	t.Run("who has lost a partition", func(t *testing.T) {
		s := open()
		before := newOwner(t, s, "v1")
		before.apply(before.batch(0, 10))
		before.look()
		after := newOwner(t, s, "v2")
		if !before.apply(before.batch(10, 40)) {
			t.Error("a batch was applied for an owner that has lost its partition")
		}
		after.expect("only what came before", 10)
		if after.apply(after.batch(0, 40)) {
			t.Error("the partition's owner is refused")
		}
		after.expect("goes on", 40)
	})
	t.Run("one of two partitions has gone back", func(t *testing.T) {
		s := open()
		o := newOwner(t, s, "v1")
		if _, err := s.Place(t.Context(), testkit.FirstPlacement(beside, s.Shards(), 0)); err != nil {
			t.Fatal(err)
		}
		there, err := s.Progress(t.Context(), []state.Partition{beside})
		if err != nil {
			t.Fatal(err)
		}
		for shard := range o.progress {
			o.progress[shard].Offset = 90
		}
		b := o.batch(90, 120)
		b.Ranges = append(b.Ranges, state.PartitionRange{Partition: beside, To: 30, Progress: there[0]})
		for offset := range int64(30) {
			b.Update(1, offset, deviceAt(offset))
			b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
		}
		if !o.apply(b) || b.Ranges[1].Behind {
			t.Errorf("behind: %v, %v; want only the first", b.Ranges[0].Behind, b.Ranges[1].Behind)
		}
		o.expect("the other one is applied", 30)
	})
	t.Run("shards without events", func(t *testing.T) {
		o := newOwner(t, open(), "v1")
		b := o.batch(0, 1)
		b.EveryShard = true
		o.apply(b)
		o.look()
		if state.Lowest(o.progress) != 1 || state.Highest(o.progress) != 1 {
			t.Errorf("progress %v, want 1 in every shard", o.progress)
		}
	})
	t.Run("the clock", func(t *testing.T) {
		o := newOwner(t, open(), "v1")
		for _, clock := range []struct{ now, want int64 }{{0, 0}, {105 * day, 105 * day}, {104 * day, 105 * day}} {
			b := o.batch(o.progress[0].Offset, o.progress[0].Offset+1)
			b.Now, b.EveryShard = clock.now, true
			o.apply(b)
			o.look()
			if got, err := o.store.Clock(t.Context()); err != nil || got != clock.want {
				t.Errorf("after a record of %d the clock is %d, error %v; want the greatest timestamp, %d", clock.now, got, err, clock.want)
			}
		}
	})
	t.Run("gaps and plans are in the history", testHistory(open))
}

func testHistory(open func() store.Store) func(t *testing.T) {
	return func(t *testing.T) {
		ctx := context.Background()
		o := newOwner(t, open(), "v1")
		o.apply(o.batch(0, 30))
		if err := o.store.Gap(ctx, transactions, 50*day); err != nil {
			t.Fatal(err)
		}
		history, err := o.store.History(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !history.Applied(transactions.Topic) || history.Plans["v1"] == nil {
			t.Errorf("the history %+v lacks the plan in use", history)
		}
		retained := state.Retained{Key: events.ID + ".x", Topic: transactions.Topic, Retention: state.Retention{Keep: events.Keep}, Tile: 1}
		if since := history.CompleteSince([]state.Retained{retained}); since < 50*day || since == state.MaxTime {
			t.Errorf("the state is complete since %d, want after the gap", since)
		}
	}
}
