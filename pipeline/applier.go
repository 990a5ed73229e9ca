package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/pipeline/busiest"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// applier is the applying goroutine of a worker: for each batch it writes the dead letters, the enriched events, the
// gaps and the state, in this order.
type applier struct {
	todo      chan *workerBatch
	done      chan *workerBatch // returns every batch of todo
	writer    store.Writer
	dead      messageWriter
	deadTopic string // to which dead writes
	written   writtenLetters
	enrich    *enrich.Enricher
	gap       func(ctx context.Context, p state.Partition, until int64) error
	grace     time.Duration // see recovery.Rules
	tracing   tracing
	metrics   *metrics
	stats     *stats
	busiest   *busiest.Counter
	trouble   retry.Trouble
	health    *health
	name      string // of the worker, in health
}

// run applies batches until todo is closed. When the context ends, it gives up a batch that cannot
// be applied.
func (a *applier) run(ctx context.Context) {
	for b := range a.todo {
		traced, span := a.tracing.batch(ctx, b)
		a.writeDeadLetters(traced, b)
		b.unapplied = !a.writeEnriched(traced, b) || !a.recordGaps(traced, b) || !a.apply(traced, b)
		ended(span, b)
		a.done <- b
	}
}

// writeDeadLetters writes the batch's dead letters. If that fails, their ranges are left out of the
// batch: no progress may pass a record that was neither applied nor set aside.
func (a *applier) writeDeadLetters(ctx context.Context, b *workerBatch) {
	var letters []*deadLetter
	var messages []kafka.Message
	for i := range b.dead {
		d := &b.dead[i]
		r := &b.Ranges[d.rangeIndex]
		// If a shard is past this record, it has applied a batch with it, and the dead letter was written before.
		d.due = !r.Behind && state.Highest(r.Progress) <= d.offset
		if d.due && !a.written.has(r.Partition, d) {
			letters, messages = append(letters, d), append(messages, d.message)
		}
	}
	if len(messages) == 0 {
		return
	}
	if err := a.dead.WriteMessages(ctx, messages...); err != nil {
		for _, d := range letters {
			b.fail(d.rangeIndex, fmt.Errorf("write dead letters to %s: %w", a.deadTopic, err))
		}
		return
	}
	for _, d := range letters {
		a.written.add(b.Ranges[d.rangeIndex].Partition, d)
	}
}

// writeEnriched writes the batch's enriched events. It reports whether the store could be read before the context
// ended.
func (a *applier) writeEnriched(ctx context.Context, b *workerBatch) bool {
	if len(b.enriched) == 0 {
		return true
	}
	start := time.Now()
	events := enrich.Batch{Batch: &b.Batch, Events: b.enriched, Fail: b.fail}
	leaveLagging(&events)
	if !a.persist(ctx, func() error { return a.enrich.Answer(ctx, &events) }) {
		return false
	}
	a.enrich.Write(ctx, &events)
	a.metrics.enrich.Observe(time.Since(start).Seconds())
	return true
}

// persist retries a call of the store for as long as the store is unavailable. It reports whether the call succeeded
// before the context ended.
func (a *applier) persist(ctx context.Context, do func() error) bool {
	for {
		err := do()
		if err == nil {
			break
		}
		a.health.set(a.name, err)
		trace.SpanFromContext(ctx).RecordError(err)
		if !retry.Wait(ctx, a.trouble.Failed(err)) {
			return false
		}
	}
	a.trouble.Over()
	a.health.clear(a.name)
	return true
}

// apply applies a batch. It reports whether it could before the context ended.
func (a *applier) apply(ctx context.Context, b *workerBatch) bool {
	start := time.Now()
	if !a.persist(ctx, func() error { return a.writer.Apply(ctx, &b.Batch) }) {
		return false
	}
	a.written.forget(b)
	now := time.Now()
	a.metrics.apply.Observe(now.Sub(start).Seconds())
	a.metrics.applied(b, now.UnixMilli())
	a.stats.add(b)
	a.busiest.Count(&b.Batch)
	if b.Refused > 0 {
		a.trouble.Log.Error("the store refused mutations because of their data", "entities", b.Refused, "first", b.Refusal)
		if b.RefusedKey != "" {
			a.trouble.Log.Debug("it is about a key", "key", b.RefusedKey)
		}
	}
	return true
}
