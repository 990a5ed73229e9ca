package backfill

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// runner works on one fill. It is not safe for concurrent use.
type runner struct {
	*Backfiller
	work     Work
	fill     *state.Fill
	before   []*state.Fill // those of the plan that have all of its columns and more
	features []string      // the features that need it, sorted by name
	poller   *fetch.Poller
	writer   store.Writer
	mapper   *features.Mapper
	log      *slog.Logger

	jobs   map[state.Partition]*job
	rest   map[state.Partition]time.Time // partitions that cannot continue, with the time until which they are left alone
	logged map[state.Partition]bool      // broken ones that were logged
	looked time.Time
	done   bool      // nothing was left at the last look
	swept  time.Time // when every shard was last moved

	part    *fetch.PartitionData // being mapped; nil if there is none
	batch   *batch               // being filled
	spare   *batch               // empty; nil while it is written
	wrote   chan *batch          // returns it
	beside  time.Duration        // how long batches were written without being waited for; see awaitBatch
	decoder fetch.Decoder
	seal    state.Seal // known before any record is mapped

	report reporter
}

func newRunner(b *Backfiller, w Work, f *state.Fill, before []*state.Fill) *runner {
	r := &runner{
		Backfiller: b, work: w, fill: f, before: before, features: w.Registry.FilledBy(f), writer: b.cfg.Store.NewWriter(), mapper: w.Registry.NewFillMapper(f),
		log:  b.cfg.Logger.With("fill", f.ID),
		jobs: map[state.Partition]*job{}, rest: map[state.Partition]time.Time{}, logged: map[state.Partition]bool{},
		batch: &batch{}, spare: &batch{}, wrote: make(chan *batch, 1),
		poller: fetch.NewPoller(fetch.PollerConfig{
			Transport: b.cfg.Transport, Bootstrap: kafka.TCP(b.cfg.Brokers...), Isolation: b.cfg.Isolation, Logger: b.cfg.Logger,
		}),
	}
	r.mapper.MaxRecordBytes, r.mapper.Namespace = b.cfg.MaxRecordBytes, b.cfg.Namespace
	r.report = reporter{log: r.log, each: reportInterval, features: strings.Join(r.features, ", ")}
	return r
}

func (r *runner) close() {
	r.poller.Close()
	r.metrics.forget(r.fill)
	r.running.forget(r.fill)
}

// restful is the factor by which looks are rarer while nothing is left. They continue because the store may go back in
// time, or partitions may be added.
const restful = 10

// patience is how long to wait for the poller before what was mapped is applied.
const patience = 5 * time.Millisecond

// run fills until the context ends or enough is done.
func (r *runner) run(ctx context.Context) {
	defer r.release()
	defer r.awaitBatch()
	for ctx.Err() == nil {
		every := lookInterval
		if r.done {
			every *= restful
		}
		if time.Since(r.looked) >= every {
			if r.look(ctx) {
				return
			}
			r.looked = time.Now()
		}
		if len(r.jobs) == 0 {
			retry.Wait(ctx, lookInterval)
			continue
		}
		if r.part != nil {
			r.turn(ctx, func() { r.take(ctx) })
			continue
		}
		waiting, cancel := context.WithTimeout(ctx, patience)
		part, err := r.poller.Poll(waiting)
		cancel()
		switch {
		case err == nil:
			r.part = part
			r.decoder.Reset(part)
		case errors.Is(err, context.DeadlineExceeded):
			if r.batch.events > 0 || time.Since(r.swept) > lookInterval {
				r.turn(ctx, func() { r.flush(ctx, true) })
			}
		case ctx.Err() == nil:
			r.reposition(ctx, err)
		}
	}
}

// turn works when it is the runner's turn. Time in which batches were written in the background counts, too.
func (r *runner) turn(ctx context.Context, work func()) {
	r.turns.take(ctx, func() time.Duration {
		r.beside = max(0, r.beside) // what was waited for between two turns is not in the time of this one
		work()
		beside := r.beside
		r.beside = 0
		return beside
	})
}

// take maps fetched data until a batch is full, and releases the data when all is mapped.
func (r *runner) take(ctx context.Context) {
	if !r.fillBatch(ctx) {
		r.release()
	}
}

func (r *runner) release() {
	if r.part != nil {
		r.part.Release()
		r.part = nil
	}
}

// fillBatch submits a full batch, now that it is the runner's turn, and maps fetched data until the next one is full. It
// reports whether there may be more data.
func (r *runner) fillBatch(ctx context.Context) (more bool) {
	if r.full() && !r.submit(ctx, time.Since(r.swept) > lookInterval) {
		return false
	}
	j := r.jobs[state.Partition{Topic: r.part.Topic, ID: r.part.Partition}]
	if j == nil || !r.poller.Current(r.part) {
		return false
	}
	var rec fetch.Record
	for len(j.steps) > 0 && !r.full() {
		ok, err := r.decoder.Next(&rec)
		if corrupt, is := errors.AsType[*fetch.CorruptError](err); is {
			r.pass(ctx, j, corrupt)
			return false
		}
		j.corrupt = 0
		if !ok {
			r.reach(ctx, j, r.decoder.NextOffset())
			return false
		}
		if !r.reach(ctx, j, rec.Offset) {
			return false
		}
		switch {
		case len(j.steps) == 0:
		case rec.Offset >= j.steps[0].from:
			if !r.mapRecord(ctx, j, &rec) {
				return false
			}
		case j.earlier != nil:
			of := j.recordOf(&rec)
			if !r.withSchemas(ctx, j, func() error { return r.mapper.Note(&of) }) {
				return false
			}
		}
	}
	return len(j.steps) > 0
}

// full reports whether the batch is as great as it may be, which is less beside live events.
func (r *runner) full() bool {
	b := r.batch
	return b.events >= r.cfg.MaxEvents || b.bytes >= r.cfg.MaxBytes || len(b.Mutations) >= liveMutations && r.cfg.Live.lately()
}

// mapRecord maps a record into the batch. Poison is skipped, and noted for its replay; late records are skipped, because
// live events report them. It reports whether the record's schema is available.
func (r *runner) mapRecord(ctx context.Context, j *job, rec *fetch.Record) bool {
	rangeIndex, of := r.rangeOf(j), j.recordOf(rec)
	var err error
	if !r.withSchemas(ctx, j, func() error {
		_, err = r.mapper.Map(&of, rangeIndex, &r.batch.Batch)
		return err
	}) {
		return false
	}
	if err == nil {
		r.metrics.records.WithLabelValues(j.Topic).Inc()
	} else {
		r.batch.skip(j.Partition, rec.Offset)
	}
	r.batch.events++
	r.batch.bytes += len(rec.Value)
	j.next = rec.Offset + 1
	r.batch.Ranges[rangeIndex].To = j.next
	return true
}

// recordOf returns a record of the partition for the mapper.
func (j *job) recordOf(rec *fetch.Record) record.Record {
	return record.Record{
		Partition: j.Partition, Offset: rec.Offset, Timestamp: rec.Timestamp, Key: rec.Key, Value: rec.Value, Headers: &rec.Headers,
		Log: j.tag, Earlier: j.earlier,
	}
}

// withSchemas reads a record of a partition, and again with the schema that it lacks. It reports whether that is available.
func (r *runner) withSchemas(ctx context.Context, j *job, read func() error) bool {
	for {
		missing, lacks := errors.AsType[*record.MissingSchema](read())
		if !lacks {
			return true
		}
		if err := r.cfg.Schemas.Supply(ctx, missing); err != nil {
			r.lack(ctx, j, err)
			return false
		}
	}
}

// lack leaves a partition alone for a while, because its next record has a schema that is not available. Waiting for it
// would hold up other fills, since only one of them works at a time. What is mapped of the partition is written first:
// otherwise it would be mapped again and again.
func (r *runner) lack(ctx context.Context, j *job, err error) {
	if !r.flush(ctx, true) {
		return
	}
	if r.jobs[j.Partition] == j {
		r.end(j)
	}
	r.rest[j.Partition] = time.Now().Add(lookInterval)
	r.report.trouble(err)
}

// rangeOf returns the index of the job's range in the batch.
func (r *runner) rangeOf(j *job) int {
	if !j.in {
		j.in, j.index = true, len(r.batch.Ranges)
		r.batch.Ranges = append(r.batch.Ranges, state.PartitionRange{
			Partition: r.fill.Partition(j.Partition), To: j.next, Epoch: -1, Progress: j.progress, Without: j.steps[0].skip,
		})
		r.batch.of = append(r.batch.of, j)
	}
	return j.index
}

// reach records that all records of a partition before an offset are mapped or not wanted. If a step ends there, the
// batch is applied first, so that no shard gets a record twice. It reports whether the job continues: not over offsets that are not
// wanted, which the next look for what is left goes past.
func (r *runner) reach(ctx context.Context, j *job, offset int64) bool {
	ended := false
	for len(j.steps) > 0 && offset >= j.steps[0].to {
		j.next = j.steps[0].to
		r.batch.Ranges[r.rangeOf(j)].To = j.next
		if !r.flush(ctx, true) || r.jobs[j.Partition] != j {
			return false
		}
		j.steps, ended = j.steps[1:], true
	}
	if len(j.steps) == 0 || ended && offset < j.steps[0].from {
		r.end(j)
		return false
	}
	j.next = max(j.next, offset)
	if j.in {
		r.batch.Ranges[j.index].To = max(r.batch.Ranges[j.index].To, min(j.next, j.steps[0].to))
	}
	return true
}

// end ends a job that is finished or must be checked again.
func (r *runner) end(j *job) {
	r.poller.Remove(j.Topic, j.ID)
	if j.in {
		r.batch.Ranges[j.index].Behind = true
	}
	delete(r.jobs, j.Partition)
}
