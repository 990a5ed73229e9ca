package pipeline

import (
	"context"
	"time"

	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/state"
)

// resumed is recovery's result for partitions.
type resumed struct {
	partitions []*assignedPartition
	attempts   []int // of each, when it was asked
	found      []recovery.Resumption
}

// resume makes recovery find where partitions continue. Everything under way for them is ignored. The others continue
// meanwhile, because it may take long if a broker or a Redis master does not answer.
func (w *worker) resume(ctx context.Context, partitions ...*assignedPartition) {
	if len(partitions) == 0 {
		return
	}
	r := resumed{partitions: partitions}
	targets := make([]state.Partition, len(partitions))
	for i, p := range partitions {
		w.abandon(p)
		p.laggingShards, p.retryAt, p.lacks = nil, time.Time{}, nil
		p.attempt++
		p.resuming = true
		r.attempts = append(r.attempts, p.attempt)
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

// goOn reads partitions from the store's progress. A partition that cannot continue is stopped.
func (w *worker) goOn(ctx context.Context, r resumed) {
	for i, p := range r.partitions {
		if w.partitions[p.Partition] != p || p.leaving != nil || p.attempt != r.attempts[i] {
			continue // it was released meanwhile
		}
		p.resuming = false
		found := &r.found[i]
		w.tellRewind(p, found.First)
		switch {
		case found.Err != nil && ctx.Err() != nil: // the worker is ending, and nothing is wrong with the partition
		case found.Err != nil:
			w.stop(p, found.Err)
		case found.Early > 0:
			p.retryAt = time.Now().Add(found.Early)
			w.graceTimer.Reset(found.Early)
		default:
			w.readFrom(p, found)
		}
	}
}

// tellRewind counts and logs, once, that the store went back in time without a batch being refused, because it did not
// answer meanwhile.
func (w *worker) tellRewind(p *assignedPartition, found *state.Claim) {
	if found == nil {
		return
	}
	if p.wentBack(found) {
		w.log.Warn("the store went back in time; reading the partition again", "topic", p.Topic, "partition", p.ID)
		w.metrics.rewinds.WithLabelValues(p.Topic).Inc()
	}
	p.compared(found)
}

// readFrom reads a partition from the lowest progress of all shards.
func (w *worker) readFrom(p *assignedPartition, found *recovery.Resumption) {
	w.seal, w.mapper.Seal = found.Seal, found.Seal
	p.progress, p.lagging = found.Progress, found.Lagging
	p.position, p.applied, p.epoch, p.log = found.Known.Offset, found.Known.Offset, -1, found.Known.Log.Tag()
	for _, at := range p.progress {
		p.epoch = max(p.epoch, at.Epoch)
	}
	w.passBroken(p)      // it may have been placed after the batch
	if !p.broken.met() { // else it is still stopped
		w.stopped(p, "")
		w.health.clear(p.String())
	}
	if found.Why != nil {
		w.lagFromTheStart(p, found.Why)
	} else {
		p.behind = unknown
	}
	w.poller.Resume(p.Topic, p.ID, found.Known)
}

// retry resumes the partitions whose wait is over.
func (w *worker) retry(ctx context.Context) {
	var due []*assignedPartition
	for _, p := range w.partitions {
		if !p.retryAt.IsZero() && !time.Now().Before(p.retryAt) && p.leaving == nil && w.supplied(ctx, p) {
			due = append(due, p)
		}
	}
	w.resume(ctx, due...)
}
