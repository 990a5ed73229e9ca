package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/align"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/state"
)

// worker processes some of the member's partitions. Its fields belong to the mapping goroutine; the applying goroutine
// gets one batch at a time.
type worker struct {
	cfg        *Config
	ctx        context.Context // of run
	metrics    *metrics
	log        *slog.Logger
	poller     *fetch.Poller
	mapper     *features.Mapper
	plan       *state.Plan // of the mapper
	streams    []*record.Stream
	memories   *memories  // of the pool
	seal       state.Seal // known before any record is mapped
	enrich     map[*record.Stream]*enrich.Stream
	tracing    tracing
	resumer    recovery.Resumer
	applier    *applier
	health     *health
	live       *backfill.Live // counts the batches of all workers
	recentLoad *load          // measures what all workers have to do
	partitions map[state.Partition]*assignedPartition
	commit     func(map[state.Partition]int64)
	changes    chan change
	resumed    chan resumed // recovery's results
	recovering sync.WaitGroup

	current    *workerBatch // being filled
	other      *workerBatch // empty, or being applied
	applying   bool         // the other one
	due        bool         // the next batch moves every shard
	graceTimer *time.Timer  // fires when a partition that its plan has just claimed may be read
	newest     int64        // greatest believed timestamp of a mapped record, in ms
	pruning    pruning

	mapping
	alignment *align.Alignment // of all workers; nil if nothing is enriched
	waiting   int              // partitions that are held back
}

// mapping is what is being mapped: the records of one partition in one fetch.
type mapping struct {
	fetched *fetch.PartitionData // nil if there is nothing to map
	decoder *fetch.Decoder
	record  fetch.Record // the last one that was decoded
	again   bool         // which was not mapped yet
	from    *assignedPartition
}

// run processes events until the context ends, then flushes. Its error ends the processor.
func (w *worker) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer w.recovering.Wait()
	defer cancel()
	w.ctx = ctx
	commits := time.NewTicker(w.cfg.CommitInterval)
	defer commits.Stop()
	looks := time.NewTicker(w.cfg.lookInterval())
	defer looks.Stop()
	w.graceTimer = time.NewTimer(0)
	defer w.graceTimer.Stop()
	var reports <-chan time.Time
	var grown <-chan struct{}
	if w.alignment != nil {
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		reports = ticker.C
		var stop func()
		grown, stop = w.alignment.Watch()
		defer stop()
	}
	defer func() {
		for _, p := range w.partitions {
			w.forget(p)
		}
	}()
	for {
		if err := w.fill(ctx); err != nil {
			return err
		}
		if w.ready() {
			w.submit()
			continue
		}
		var next <-chan struct{}
		if w.fetched == nil {
			next = w.poller.Ready()
		}
		select {
		case <-next:
		case b := <-w.applier.done:
			w.complete(ctx, b)
			w.forgetReleased()
		case c := <-w.changes:
			w.change(ctx, c)
		case found := <-w.resumed:
			w.recovered(ctx, found)
		case <-commits.C:
			w.due = len(w.partitions) > 0
		case <-looks.C:
			w.look(ctx)
		case <-w.graceTimer.C:
			w.retry(ctx)
		case <-reports:
			w.reportReached()
		case <-grown: // what was held back is taken
		case <-ctx.Done():
			w.flush()
			return nil
		}
	}
}

// fill maps fetched records until there are none or the batch is full. Its error ends the
// processor.
func (w *worker) fill(ctx context.Context) error {
	for {
		behind := w.fetched != nil && w.decoder.NextOffset() < w.from.position
		w.mapFetched()
		if w.fetched != nil || behind { // what is mapped must not wait until all is remembered
			return nil
		}
		if w.takeHeld() {
			continue
		}
		part, err := w.poller.Take()
		if part == nil && err == nil {
			return nil
		}
		if err := w.accept(ctx, part, err); err != nil {
			return err
		}
	}
}

// accept starts on fetched records, unless their partition is held back, or finds a new position for a partition whose old
// one is not, or no longer, in the log.
func (w *worker) accept(ctx context.Context, fetched *fetch.PartitionData, err error) error {
	gone, isGone := errors.AsType[fetch.PositionError](err)
	switch {
	case isGone:
		if p := w.partitions[gone.Of()]; p != nil && p.active() {
			w.log.Warn("the position is not in the log", "error", gone)
			w.resume(ctx, p)
		}
		return nil
	case err != nil:
		return err
	}
	if p := w.partitions[state.Partition{Topic: fetched.Topic, ID: fetched.Partition}]; p.held != nil {
		p.held.later = append(p.held.later, fetched)
	} else {
		w.read(fetched)
	}
	return nil
}

// read starts on fetched records.
func (w *worker) read(fetched *fetch.PartitionData) {
	w.fetched, w.again = fetched, false
	w.from = w.partitions[state.Partition{Topic: fetched.Topic, ID: fetched.Partition}]
	// The epoch may be later than that of the records mapped next, see Position.Epoch.
	w.from.epoch = max(w.from.epoch, w.fetched.LastEpoch)
	if w.decoder == nil {
		w.decoder = new(fetch.Decoder)
	}
	w.decoder.Reset(fetched)
	w.reportLag(w.from)
}

// mapFetched maps the current records until there are none or the batch is full.
func (w *worker) mapFetched() {
	if w.fetched == nil {
		return
	}
	for !w.full() {
		ok, err := true, error(nil)
		if !w.again {
			ok, err = w.decoder.Next(&w.record)
		}
		w.again = false
		if err != nil {
			w.handleBroken(err)
			return
		}
		if !ok && w.decoder.NextOffset() < w.from.position {
			w.fetched.Release()
			w.fetched = nil
			return
		}
		if !ok {
			w.from.remembers = true
			w.reportCut()
			w.from.position = w.decoder.NextOffset()
			w.clearBroken(w.from)
			w.metrics.absent.WithLabelValues(w.from.Topic).Add(float64(w.decoder.Absent()))
			w.current.extend(w.from)
			w.fetched.Release()
			w.fetched = nil
			return
		}
		take := w.mapRecord
		if w.record.Offset < w.from.position {
			take = w.note
		} else if w.mustWait() {
			w.holdBack()
			return
		} else {
			w.from.remembers = true
		}
		if !take(&w.record) {
			return
		}
	}
}

// mapRecord maps one record into the batch: to mutations, or to a dead letter. It returns false if a schema is missing:
// the partition is then stopped.
func (w *worker) mapRecord(rec *fetch.Record) bool {
	b := w.current
	w.begin(b)
	rangeIndex, before := b.rangeOf(w.from), len(b.Updates)
	of := w.recordOf(rec)
	var out features.Outcome
	lacks, err := w.withSchemas(func() (err error) {
		out, err = w.mapper.Map(&of, rangeIndex, &b.Batch)
		return err
	})
	if w.mapper.Forged > 0 {
		w.metrics.forged.Add(float64(w.mapper.Forged))
		w.mapper.Forged = 0
	}
	if lacks != nil {
		w.stopAt(rec.Offset, err)
		w.from.pause.lacks = lacks
		return false
	}
	var poison *record.Poison
	switch {
	case errors.As(err, &poison):
		b.dead = append(b.dead, w.newDeadLetter(rangeIndex, rec, poison))
	case out.LateToDeadLetter:
		b.dead = append(b.dead, w.newDeadLetter(rangeIndex, rec, &record.Poison{
			Reason: record.Late, Stream: out.Stream, Message: "the event came after state of its time was dropped",
		}))
	}
	at, s := state.Believed(rec.Timestamp, b.began), &b.spans[rangeIndex]
	s.least, s.greatest = min(s.least, at), max(s.greatest, at)
	if poison == nil {
		// Records of no stream also count: a later plan may have a stream for them.
		w.newest = max(w.newest, at)
		w.enrichEvents(rec, out.Events, rangeIndex, before)
	}
	w.tracing.link(b, rec)
	b.count(rangeIndex, out, poison)
	if b.events++; b.events == 1 {
		b.live = w.live
		b.live.Begin()
	}
	b.bytes += len(rec.Value)
	b.timestamps = append(state.WithRoom(b.timestamps), stamp{rangeIndex, rec.Timestamp})
	w.from.position = rec.Offset + 1
	b.extend(w.from)
	return true
}

// recordOf returns a record of the current partition for the mapper.
func (w *worker) recordOf(rec *fetch.Record) record.Record {
	return record.Record{
		Partition: w.from.Partition, Offset: rec.Offset, Timestamp: rec.Timestamp, Log: w.from.log,
		Key: rec.Key, Value: rec.Value, Headers: &rec.Headers, Earlier: w.from.earlier,
	}
}

// begin records when the first record is added to a batch.
func (w *worker) begin(b *workerBatch) {
	if b.events == 0 {
		b.began = time.Now()
	}
}

// enrichEvents adds the events of a record that are to be written.
func (w *worker) enrichEvents(rec *fetch.Record, events []record.Event, rangeIndex, before int) {
	for i := range events {
		if plan := w.enrich[events[i].Stream]; plan != nil {
			n := enrich.NewEvent(plan, &events[i], w.from.Partition, rec)
			n.Range, n.Before, n.After = rangeIndex, before, len(w.current.Updates)
			w.current.enriched = append(w.current.enriched, n)
		}
	}
}

func (w *worker) full() bool {
	return w.current.kept != nil || w.current.events >= w.cfg.MaxEvents || w.current.bytes >= w.cfg.MaxBytes
}

// ready reports whether the batch should be applied now, after fill: everything fetched is mapped, or the batch is full.
// It waits for nothing else: the poller determines how much is fetched together.
func (w *worker) ready() bool {
	return !w.applying && (w.due || w.current.events > 0)
}

// submit gives the batch to the applying goroutine and continues with the other one.
func (w *worker) submit() {
	b := w.current
	w.recentLoad.add(b, w.full())
	if w.due {
		// Partitions without records are moved, too, as a check: the script shows whether a shard has gone back in
		// time.
		b.EveryShard, w.due = true, false
		for _, p := range w.partitions {
			if p.active() && p != b.kept {
				b.rangeOf(p)
			}
		}
	}
	// A shard does not see earlier batches without mutations for it.
	b.Now = max(b.Now, w.newest)
	b.Spare = b.Now - w.pruning.by(time.Now())
	if w.alignment != nil {
		w.alignment.Apply(b.Now)
	}
	w.current, w.other, w.applying = w.other, b, true
	w.applier.todo <- b
}

// complete handles a batch that was applied: it commits offsets, and reads partitions again that
// could not be applied.
func (w *worker) complete(ctx context.Context, b *workerBatch) {
	w.commitOf(b)
	w.applying = false
	defer b.reset()
	var behind []*assignedPartition
	inAll := false // some range of the batch is applied in every shard
	for i := range b.Ranges {
		p := b.partitions[i]
		switch r := &b.Ranges[i]; {
		case p.lease.number != b.leases[i]: // it was resumed meanwhile, or stopped
			if p == b.kept && !r.Behind {
				p.applied = max(p.applied, r.To) // before it stopped
			}
		case p.phase == leaving:
			if r.Behind {
				w.abandon(p) // the next owner reads it again
			}
		case b.failures[i] != nil:
			w.stop(p, b.failures[i])
		case r.Behind:
			w.log.Warn("the store went back in time or was spread over more shards, or another owner, plan or leader took the partition; reading it again", "topic", p.Topic, "partition", p.ID)
			p.lease.progress, p.confirmed = nil, nil // it is reported
			behind = append(behind, p)
		default:
			w.advance(ctx, p, b, i)
			inAll = inAll || b.EveryShard && !slices.Contains(r.Lagging, true)
		}
	}
	if inAll {
		w.pruning.applied(b.Now, time.Now())
	}
	w.resume(ctx, behind...)
	for _, p := range behind {
		w.rewound(p)
	}
	if w.alignment != nil && w.alignment.Limit() < state.MaxTime {
		w.reportReached()
	}
}

// rewound notes that a partition that is not active is read again, since the store lacks what was applied of it. Nothing may be
// pruned then by records that the store may not have any more.
func (w *worker) rewound(p *assignedPartition) {
	w.metrics.rewinds.WithLabelValues(p.Topic).Inc()
	w.newest, w.pruning = 0, pruning{grace: w.pruning.grace}
	if w.alignment != nil {
		w.alignment.Rewind()
	}
	for i := range w.current.Ranges {
		if !w.current.Ranges[i].Behind {
			w.newest = max(w.newest, w.current.spans[i].greatest)
		}
	}
}

// advance records that a range of a batch was applied, in the shards that do not lag.
func (w *worker) advance(ctx context.Context, p *assignedPartition, b *workerBatch, rangeIndex int) {
	r := &b.Ranges[rangeIndex]
	p.applied, p.reached = r.To, max(p.reached, b.spans[rangeIndex].greatest)
	for _, at := range r.Progress {
		if at.Furthest() > r.To { // another owner, or an earlier one, was ahead
			w.poller.Reach(p.Topic, p.ID, at.Furthest(), at.Epoch)
		}
	}
	if !p.broken.met() {
		p.trouble.Over()
		w.noteLag(ctx, p, r)
	}
	if b.EveryShard {
		w.reportLag(p)
	}
}

// commitOf commits the offsets up to which a batch was applied in every shard.
func (w *worker) commitOf(b *workerBatch) {
	if !b.EveryShard || b.unapplied {
		return
	}
	offsets := make(map[state.Partition]int64)
	for i, r := range b.Ranges {
		lowest := state.Lowest(r.Progress) // less than To if shards lag, negative if one could not be claimed
		if !r.Behind && lowest >= 0 {
			offsets[b.partitions[i].Partition] = min(r.To, lowest)
		}
	}
	w.commit(offsets)
}

// flush applies and commits the mapped records, as far as the time to shut down allows. The next owner reads the rest
// again.
func (w *worker) flush() {
	if w.applying {
		w.completeLast()
	}
	w.due = true
	w.submit()
	w.completeLast()
}

// completeLast waits for the batch under way; the applying goroutine always returns it, at the latest when the time to
// shut down ends.
func (w *worker) completeLast() {
	b := <-w.applier.done
	w.commitOf(b)
	for i, p := range b.partitions {
		if (b.Ranges[i].Behind || b.unapplied) && p.lease.number == b.leases[i] {
			w.forget(p) // its later records would move the progress past those that failed
		}
	}
	b.reset()
	w.applying = false
}
