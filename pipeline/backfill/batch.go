package backfill

import (
	"context"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
)

// batch is a batch of a runner. Two alternate: while one is written, the other is filled.
type batch struct {
	state.Batch
	of            []*job // by range
	events, bytes int
	skipped       map[state.Partition][]int64 // offsets of records that cannot be used

	written bool
	took    time.Duration
}

func (b *batch) reset() {
	b.Batch.Reset()
	clear(b.of)
	clear(b.skipped)
	b.of, b.events, b.bytes = b.of[:0], 0, 0
}

// stopped reports whether some shard does not continue with a range: the store went back in time, another process works
// on the partition, the fill was given up, or a master does not answer.
func (b *batch) stopped(i int) bool {
	return b.Ranges[i].Behind || slices.Contains(b.Ranges[i].Lagging, true)
}

// submit waits for the previous batch, starts to write this one, and continues with the other one. With everyShard it
// moves all shards of the runner's partitions. It reports whether the previous batch was written before the context
// ended.
func (r *runner) submit(ctx context.Context, everyShard bool) bool {
	if !r.awaitBatch() {
		return false
	}
	if everyShard {
		r.swept = time.Now()
		for _, j := range r.jobs {
			if len(j.steps) > 0 && j.next > j.steps[0].from {
				r.rangeOf(j)
			}
		}
	}
	b := r.batch
	if len(b.Ranges) == 0 {
		return true
	}
	b.EveryShard = everyShard
	for _, j := range b.of {
		j.in = false
	}
	r.batch, r.spare = r.spare, nil
	go func() {
		b.took, b.written = 0, false
		if r.writeSkipped(ctx, b) {
			b.took, b.written = write(ctx, r.writer, &b.Batch, r.report.trouble)
		}
		r.wrote <- b
	}()
	return true
}

// awaitBatch waits for the batch under way, if there is one, and ends the jobs that it has stopped: the rest of them is
// read again. It reports whether the batch was written before the context ended.
func (r *runner) awaitBatch() bool {
	if r.spare != nil {
		return true
	}
	began := time.Now()
	b := <-r.wrote
	// Waiting for a store or a Kafka that is unavailable is no work: the fill would rest for as long again, or for many
	// times as long at a low rate.
	r.beside += b.took - time.Since(began)
	for i, j := range b.of {
		if r.jobs[j.Partition] == j && b.stopped(i) {
			r.end(j)
		}
	}
	b.reset()
	r.spare = b
	return b.written
}

// flush writes the batch and waits for it.
func (r *runner) flush(ctx context.Context, everyShard bool) bool {
	return r.submit(ctx, everyShard) && r.awaitBatch()
}
