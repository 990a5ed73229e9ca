package enrich

import (
	"context"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// members returns the reads of the members that the events go through, each series of a member once, with any tiles.
func (e *Enricher) members(ctx context.Context, b *Batch, stored state.Snapshot) []state.Read {
	e.reading.Reset(0)
	for _, n := range e.due {
		n.wantMultiHop(&e.reading)
	}
	if len(e.reading.Reads()) == 0 {
		return nil
	}
	var reads []state.Read
	known := map[state.Read]bool{}
	adding := adding{store: e.store, batch: b, state: stored.Copy(e.reading.Reads())}
	for _, n := range e.due {
		adding.upTo(n.After)
		e.reading.Reset(n.now)
		n.wantMultiHop(&e.reading)
		lists := len(e.reading.Reads())
		if e.reading.ReadLists(ctx, query.SnapshotReader{State: adding.state}) != nil {
			continue // answering the event finds the same error, and reports it
		}
		for _, r := range e.reading.Reads()[lists:] {
			member := state.Read{Series: r.Series, Entity: r.Entity}
			if !known[member] {
				known[member] = true
				reads = append(reads, member)
			}
		}
	}
	return reads
}

// adding adds a batch to a snapshot, in the order of its records and without what the store has
// applied.
type adding struct {
	store store.Store
	batch *Batch
	state state.Snapshot
	added int // how many of the batch's Updates
}

// upTo adds the batch's Updates up to a number.
func (a *adding) upTo(touched int) {
	for ; a.added < touched; a.added++ {
		u := &a.batch.Updates[a.added]
		r := &a.batch.Ranges[u.Range]
		if !r.Behind && !r.Progress[a.store.ShardOf(u, len(r.Progress))].Has(u) {
			a.state.Add(a.batch.Batch, u)
		}
	}
}
