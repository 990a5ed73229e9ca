package pipeline

import (
	"context"

	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// change is a request to change the partitions of a worker.
type change struct {
	take     []state.Partition
	release  []state.Partition
	released chan<- struct{}   // closed once they are flushed
	abandon  []state.Partition // partitions to release without further waiting
}

// change takes partitions, or begins to release them.
func (w *worker) change(ctx context.Context, c change) {
	var taken []*assignedPartition
	for _, id := range c.take {
		p := &assignedPartition{
			Partition: id, underPlan: id.WithPlan(w.plan.Version), behind: unknown, lacked: unknown, inVain: inVain,
			trouble: retry.Trouble{Log: w.log.With("topic", id.Topic, "partition", id.ID), What: "processing the partition"},
		}
		w.partitions[id] = p
		taken = append(taken, p)
	}
	w.resume(ctx, taken...)
	if len(c.release) > 0 {
		w.release(c.release, c.released)
	}
	for _, id := range c.abandon {
		if p := w.partitions[id]; p != nil {
			w.abandon(p)
			w.forget(p)
		}
	}
	w.forgetReleased()
}

// release stops reading partitions, and applies their mapped records in every shard, so that the next owner continues
// where this one ends.
func (w *worker) release(ids []state.Partition, released chan<- struct{}) {
	left := &leaving{released: released}
	for _, id := range ids {
		p := w.partitions[id]
		if p == nil {
			continue
		}
		p.leaving = left
		left.partitions++
		w.poller.Remove(p.Topic, p.ID)
		w.dropFetched(p)
		if p.active() && p != w.current.kept {
			w.current.rangeOf(p)
			w.due = true
		}
	}
	if left.partitions == 0 {
		close(released)
	}
}

// leaving counts partitions that are released together.
type leaving struct {
	partitions int // not flushed yet
	released   chan<- struct{}
}

// forgetReleased forgets the partitions to be released that have nothing under way.
func (w *worker) forgetReleased() {
	for _, p := range w.partitions {
		if p.leaving != nil && p.in == nil {
			w.forget(p)
		}
	}
}

// forget ends the processing of a partition.
func (w *worker) forget(p *assignedPartition) {
	w.poller.Remove(p.Topic, p.ID)
	w.stopped(p, "")
	delete(w.partitions, p.Partition)
	if p.leaving == nil {
		return
	}
	if p.leaving.partitions--; p.leaving.partitions == 0 {
		close(p.leaving.released)
	}
}
