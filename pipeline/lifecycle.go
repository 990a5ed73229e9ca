package pipeline

import (
	"context"
	"slices"
	"time"

	"github.com/weir-stream/weir/pipeline/recovery"
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
			Partition: id, underPlan: id.WithPlan(w.plan.Version), backlog: noBacklog, reached: state.MinTime,
			trouble: retry.Trouble{Log: w.log.With("topic", id.Topic, "partition", id.ID), What: "processing the partition"},
		}
		w.partitions[id] = p
		taken = append(taken, p)
	}
	w.find(ctx, taken)
	if len(c.release) > 0 {
		w.release(c.release, c.released)
	}
	for _, id := range c.abandon {
		if p := w.partitions[id]; p != nil {
			w.forget(p)
		}
	}
	w.forgetReleased()
}

// resumed is recovery's result for partitions.
type resumed struct {
	partitions []*assignedPartition
	leases     []int // of each, when recovery was asked
	found      []recovery.Resumption
}

// resume makes recovery find where partitions continue. Everything under way for them is ignored.
func (w *worker) resume(ctx context.Context, partitions ...*assignedPartition) {
	w.find(ctx, slices.DeleteFunc(partitions, func(p *assignedPartition) bool { return !w.move(p, resuming) }))
}

// find makes recovery find where partitions continue that are resuming. The others continue meanwhile, because it may
// take long if a broker or a server of the store does not answer.
func (w *worker) find(ctx context.Context, partitions []*assignedPartition) {
	if len(partitions) == 0 {
		return
	}
	r := resumed{partitions: partitions}
	targets := make([]state.Partition, len(partitions))
	for i, p := range partitions {
		p.backlog.shards = nil
		r.leases = append(r.leases, p.lease.number)
		targets[i] = p.Partition
	}
	w.recovering.Go(func() {
		r.found = w.resumer.Resume(ctx, targets)
		select {
		case w.resumed <- r:
		case <-ctx.Done():
		}
	})
}

// recovered reads partitions from the store's progress. A partition that cannot continue is stopped.
func (w *worker) recovered(ctx context.Context, r resumed) {
	for i, p := range r.partitions {
		if p.phase != resuming || p.lease.number != r.leases[i] {
			continue // it is leaving or was released meanwhile
		}
		found := &r.found[i]
		if found.First != nil && p.wentBack(found.First) { // no batch was refused, because the store did not answer meanwhile
			w.log.Warn("the store went back in time; reading the partition again", "topic", p.Topic, "partition", p.ID)
			w.rewound(p)
		}
		switch {
		case found.Err != nil && ctx.Err() != nil: // the worker is ending, and nothing is wrong with the partition
		case found.Err != nil:
			w.stop(p, found.Err)
		case found.Early > 0:
			if w.move(p, waiting) {
				p.pause.until = time.Now().Add(found.Early)
				w.graceTimer.Reset(found.Early)
			}
		default:
			w.readFrom(p, found)
		}
	}
	if w.alignment != nil {
		w.reportReached() // before anything is mapped: they may have been further
	}
}

// readFrom reads a partition from the lowest progress of all shards.
func (w *worker) readFrom(p *assignedPartition, found *recovery.Resumption) {
	to := reading
	if found.Why != nil {
		to = lagging
	} else if p.backlog.waits.Tried() {
		to = catchingUp
	}
	if !w.move(p, to) {
		return
	}
	w.seal, w.mapper.Seal = found.Seal, found.Seal
	p.lease.progress, p.lease.lagging = found.Progress, found.Lagging
	if found.Known.Offset < p.applied {
		p.reached = state.MinTime
	}
	p.position, p.applied, p.epoch, p.log = found.Known.Offset, found.Known.Offset, -1, found.Known.Log.Tag()
	for _, at := range p.lease.progress {
		p.epoch = max(p.epoch, at.Epoch)
	}
	w.clearBroken(p)     // it may have been placed after the batch
	if !p.broken.met() { // else it is still stopped
		w.report(p, nil)
	}
	if found.Why != nil {
		w.lagFromTheStart(p, found.Why)
	} else {
		p.backlog.from = unknown
	}
	w.poller.Resume(p.Topic, p.ID, w.readBack(p, found))
}

// retry resumes the partitions whose wait is over.
func (w *worker) retry(ctx context.Context) {
	var due []*assignedPartition
	for _, p := range w.partitions {
		if (p.phase == waiting || p.phase == stopped) && !time.Now().Before(p.pause.until) && w.supplied(ctx, p) {
			due = append(due, p)
		}
	}
	w.resume(ctx, due...)
}

// stop stops a partition until the next try.
func (w *worker) stop(p *assignedPartition, err error) {
	if w.move(p, stopped) {
		w.fail(p, err)
	}
}

// fail reports why a stopped partition cannot continue, and sets when it is tried next.
func (w *worker) fail(p *assignedPartition, err error) {
	p.pause.until = time.Now().Add(p.trouble.Failed(err))
	w.report(p, err)
}

// stopAt stops the current partition at a record, or batch, that it cannot get past. What is before it is applied in every
// shard: otherwise it would be read again for shards without records of it, each time the partition is tried. The rest is
// fetched again for another batch: a partition must not have two ranges in one batch, because the progress would be valid
// for both.
func (w *worker) stopAt(offset int64, err error) {
	w.from.position = offset
	w.current.extend(w.from)
	w.current.keep(w.from)
	w.due = true
	w.stop(w.from, err)
}

// report says why a partition cannot continue, in the metrics and in health; nil means that it can.
func (w *worker) report(p *assignedPartition, err error) {
	if err == nil {
		w.countStopped(p, "")
		w.health.clear(p.String())
	} else {
		w.countStopped(p, recovery.ReasonOf(err))
		w.health.set(p.String(), err)
	}
}

// countStopped updates the count of stopped partitions by reason; "" means that the partition is not stopped.
func (w *worker) countStopped(p *assignedPartition, reason string) {
	if p.reason == reason {
		return
	}
	if p.reason != "" {
		w.metrics.stopped.WithLabelValues(p.Topic, p.reason).Dec()
	}
	if reason != "" {
		w.metrics.stopped.WithLabelValues(p.Topic, reason).Inc()
	}
	p.reason = reason
}

// abandon ends the lease of a partition, and removes it from everything under way in this goroutine.
func (w *worker) abandon(p *assignedPartition) {
	w.endReading(p)
	w.current.drop(p)
	if p.lease.progress != nil && !w.applying { // else the applying goroutine writes to it
		p.confirm()
	}
	p.lease = lease{number: p.lease.number + 1} // what comes back for the old one is ignored
}

// endReading stops fetching a partition, and drops what was fetched and is not mapped.
func (w *worker) endReading(p *assignedPartition) {
	w.poller.Remove(p.Topic, p.ID)
	w.dropHeld(p)
	if w.from == p && w.fetched != nil {
		w.fetched.Release()
		w.fetched = nil
	}
}

// release stops reading partitions, and applies their mapped records in every shard, so that the next owner continues
// where this one ends.
func (w *worker) release(ids []state.Partition, released chan<- struct{}) {
	left := 1
	gone := func() {
		if left--; left == 0 {
			close(released)
		}
	}
	for _, id := range ids {
		p := w.partitions[id]
		if p == nil || !w.move(p, leaving) {
			continue
		}
		p.gone = gone
		left++
		w.endReading(p)
		if p.lease.progress != nil && p != w.current.kept {
			w.current.rangeOf(p)
			w.due = true
		}
	}
	gone()
}

// forgetReleased forgets the partitions to be released that have nothing under way.
func (w *worker) forgetReleased() {
	for _, p := range w.partitions {
		if p.phase == leaving && p.in == nil {
			w.forget(p)
		}
	}
}

// forget ends the processing of a partition.
func (w *worker) forget(p *assignedPartition) {
	if !w.move(p, released) {
		return
	}
	w.countStopped(p, "")
	w.leaveMemory(p)
	delete(w.partitions, p.Partition)
	if p.gone != nil {
		p.gone()
	}
}
