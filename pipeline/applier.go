package pipeline

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
)

// applier is the applying goroutine of a worker: for each batch it writes the
// dead letters, then the state.
type applier struct {
	todo    chan *batch
	done    chan *batch // gets every batch of todo back
	writer  Writer
	dead    messageWriter
	metrics *metrics
	stats   *stats
	trouble trouble
	health  *health
	name    string // of the worker, in health
}

// run applies batches until todo is closed. When the context ends, a batch that
// cannot be applied is given up.
func (a *applier) run(ctx context.Context) {
	for b := range a.todo {
		a.writeDeadLetters(ctx, b)
		b.unapplied = !a.apply(ctx, b)
		a.done <- b
	}
}

// writeDeadLetters writes the batch's dead letters. Where that fails, their
// sources are left out of the batch: no progress may pass a record that was
// neither applied nor set aside.
func (a *applier) writeDeadLetters(ctx context.Context, b *batch) {
	var messages []kafka.Message
	for _, d := range b.dead {
		// A shard that is further has applied a batch with this record in it,
		// whose dead letters were written before.
		if s := &b.Sources[d.source]; !s.Behind && slices.Max(s.Progress) <= d.offset {
			messages = append(messages, d.message)
		}
	}
	if len(messages) == 0 {
		return
	}
	if err := a.dead.WriteMessages(ctx, messages...); err != nil {
		for _, d := range b.dead {
			b.Sources[d.source].Behind = true
			b.failures[d.source] = fmt.Errorf("write dead letters: %w", err)
		}
	}
}

// apply applies a batch, however long Redis is away. It says whether it could
// before the context ended.
func (a *applier) apply(ctx context.Context, b *batch) bool {
	start := time.Now()
	for {
		err := a.writer.Apply(ctx, &b.Batch)
		if err == nil {
			break
		}
		a.health.set(a.name, err)
		if !wait(ctx, a.trouble.failed(err)) {
			return false
		}
	}
	a.trouble.over()
	a.health.clear(a.name)
	now := time.Now()
	a.metrics.apply.Observe(now.Sub(start).Seconds())
	a.metrics.applied(b, now.UnixMilli())
	a.stats.add(b)
	if b.Refused > 0 {
		a.trouble.log.Error("Redis refused operations because of their data", "operations", b.Refused, "first", b.Refusal)
	}
	return true
}
