package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testSnapshot compares the answers of a snapshot with those of the store after it has applied the same events, for
// every function and window, and every member of a list.
func testSnapshot(t *testing.T, open func() store.Store) {
	registry := parse(t, conformanceDefinitions())
	for seed := range uint64(testkit.Trials(3)) {
		s := open()
		c := newConformance(t, applyingStore(t, s), registry, rand.New(rand.NewPCG(seed, 12)))
		for range 6 {
			c.compareSnapshot(s)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func (c *conformance) compareSnapshot(s store.Store) {
	c.Helper()
	ctx := context.Background()
	b := c.batch()
	var asked []asking
	var thought, stored query.Reading
	thought.Reset(c.now)
	stored.Reset(c.now)
	for _, f := range c.registry.Features {
		for _, entity := range append(c.model.Entities(f), "nobody") {
			a := asking{feature: f, entity: entity, at: c.moment(f, c.now)}
			thought.Want(f, entity, a.at)
			stored.Want(f, entity, a.at)
			asked = append(asked, a)
		}
	}
	snapshot := c.snapshotWith(s, b, &thought)
	c.apply(b)
	thought.Reset(c.now)
	for _, a := range asked {
		thought.Want(a.feature, a.entity, a.at)
	}
	if err := errors.Join(thought.Read(ctx, query.SnapshotReader{State: snapshot}), stored.Read(ctx, s)); err != nil {
		c.Fatal(err)
	}
	for _, a := range asked {
		var got, want query.Answer
		thought.Next(&got)
		stored.Next(&want)
		if got, want := string(got.AppendJSON(nil)), string(want.AppendJSON(nil)); got != want {
			c.Fatalf("%s of %q at %d\nsnapshot %s\napplied  %s", a.feature.Definition, a.entity, a.at, got, want)
		}
	}
}

// snapshotWith returns a snapshot of what a reading needs from a store, with a batch added.
func (c *conformance) snapshotWith(s store.Store, b *state.Batch, reading *query.Reading) state.Snapshot {
	c.Helper()
	ctx := context.Background()
	snapshot, err := s.Snapshot(ctx, reading.Reads())
	if err != nil {
		c.Fatal(err)
	}
	lists := snapshot.Copy(reading.Reads())
	for i := range b.Updates {
		lists.Add(b, &b.Updates[i])
	}
	if err := errors.Join(reading.ReadLists(ctx, query.SnapshotReader{State: lists}), snapshot.Extend(ctx, reading.Reads())); err != nil {
		c.Fatal(err)
	}
	for i := range b.Updates {
		snapshot.Add(b, &b.Updates[i])
	}
	return snapshot
}
