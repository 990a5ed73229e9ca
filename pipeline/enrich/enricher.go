package enrich

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/pipeline/align"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Enricher answers the events of batches and writes them. It is not safe for concurrent use.
//
// Events are written before their batch is applied. So no shard's progress passes an event that was not written, and
// events that some shard has passed are not written again. After any crash the greatest progress of all shards tells
// where to continue. The answers are read from a state without the batch, and the batch is added to it in memory, event
// by event, in the order of its records. So an answer always includes exactly the events of its partition up to its own
// event.
//
// Both hops of multi-hop features do the same. To find the entities of the second hop, the batch is first added to a
// copy of the lists: this gives the members of each list as of each event, including members that only the batch has.
// Their state is read in a second round trip, at the same progress, and then the batch is added to all of it at once.
type Enricher struct {
	store   store.Store
	writer  writer
	schemas Registry
	tables  Tables
	// alignment tells what the process has applied since the history was read.
	alignment *align.Alignment
	metrics   Metrics
	log       *slog.Logger

	complained time.Time // when damaged state was last logged

	past  *store.Histories
	known known     // from the last history of the batch
	asked time.Time // before the state was last read
	stale bool      // something was filled since

	due     []*Event // of the batch, those to be written
	written writtenEvents
	reading query.Reading
}

// Tables are the tables that features look up.
type Tables interface {
	query.Tables
	// Awaited returns an error, which wraps state.ErrUnavailable, while one of the tables is not whole yet.
	Awaited([]*features.Table) error
}

// New makes an Enricher for the batches of one worker. The client writes the events; the workers of
// a processor share the history, the alignment, the tables, which may be nil if no feature looks one up, and the registry, which may
// be nil if no events are written in Avro.
func New(s store.Store, h *store.Histories, a *align.Alignment, client *kafka.Client, r Registry, t Tables, m Metrics, log *slog.Logger) *Enricher {
	e := &Enricher{store: s, past: h, alignment: a, writer: writer{client}, schemas: r, tables: t, metrics: m, log: log, written: writtenEvents{}}
	if t != nil {
		e.reading.SetTables(t)
	}
	return e
}

// Metrics count written events and damage.
type Metrics struct {
	Written *prometheus.CounterVec // events, by stream
	Damaged prometheus.Counter     // values that an event lacks because state is damaged
}

// Batch is a batch whose Events are written before it is applied.
type Batch struct {
	*state.Batch
	Events []*Event // in the order of their records
	// Fail leaves a range, by its index, out of the batch, and records why.
	Fail func(rangeIndex int, err error)
}

// Leave leaves a range with events to write out of the batch.
func (b *Batch) Leave(rangeIndex int, why error) {
	of := func(n *Event) bool { return n.Range == rangeIndex }
	if !b.Ranges[rangeIndex].Behind && slices.ContainsFunc(b.Events, of) {
		b.Fail(rangeIndex, fmt.Errorf("its enriched events wait: %w", why))
	}
}

// Answer answers the batch's events. Events whose state cannot be read, because a master does not answer or because a
// table is not whole yet, wait: their partitions are left out of the batch, and all others continue. No event may be
// skipped, because the events of a partition are written in order. It fails if the store cannot be reached at all.
func (e *Enricher) Answer(ctx context.Context, b *Batch) error {
	err := e.answer(ctx, b)
	if !errors.Is(err, state.ErrUnavailable) || !e.someAvailable(ctx) {
		return err
	}
	for i := range b.Ranges {
		b.Leave(i, err)
	}
	return nil
}

// someAvailable reports whether the master of any shard answers.
func (e *Enricher) someAvailable(ctx context.Context) bool {
	for shard := range e.store.Shards() {
		if e.store.Available(ctx, shard) == nil {
			return true
		}
	}
	return false
}

// answer makes the values of the batch's events that are to be written. It fails if the store
// cannot be reached.
func (e *Enricher) answer(ctx context.Context, b *Batch) error {
	var state state.Snapshot
	for again := true; again; {
		var err error
		if state, err = e.read(ctx, b); err != nil || len(e.due) == 0 {
			return err
		}
		before := e.stale
		if err := e.look(ctx); err != nil {
			return err
		}
		again = e.stale && !before // what was filled is in the state read now
	}
	e.stale = false
	failures := map[int]error{}
	adding := adding{store: e.store, batch: b, state: state}
	for _, n := range e.due {
		n.answers = make([]query.Answer, len(n.stream.features))
		adding.upTo(n.Before)
		err := e.ask(ctx, n, state, true)
		adding.upTo(n.After)
		if err == nil {
			err = e.ask(ctx, n, state, false)
		}
		if err != nil {
			failures[n.Range] = err
			continue
		}
		n.encode()
	}
	// Not earlier: the batch must stay the same between finding the members and here, or the members would differ.
	for rangeIndex, err := range failures {
		b.Fail(rangeIndex, err)
	}
	return nil
}

// read reads the state for the batch's events, as it is before the batch.
func (e *Enricher) read(ctx context.Context, b *Batch) (stored state.Snapshot, err error) {
	for confirmed := false; !confirmed; {
		e.find(b)
		if len(e.due) == 0 {
			return nil, nil
		}
		if err := e.awaited(); err != nil {
			return nil, err
		}
		e.reading.Reset(0)
		for _, n := range e.due {
			n.want(&e.reading, true)
			n.want(&e.reading, false)
		}
		e.asked = e.past.Now()
		if stored, err = e.store.Snapshot(ctx, e.reading.Reads()); err != nil {
			return nil, err
		}
		if err = stored.Extend(ctx, e.members(ctx, b, stored)); err != nil {
			return nil, err
		}
		if confirmed, err = e.confirm(ctx, b); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// awaited returns an error while a table that the events need is not whole.
func (e *Enricher) awaited() error {
	var last *Stream
	for _, n := range e.due {
		if n.stream == last || len(n.stream.tables) == 0 || e.tables == nil {
			continue
		}
		last = n.stream
		if err := e.tables.Awaited(last.tables); err != nil {
			return err
		}
	}
	return nil
}

// look reads since when the state holds all events, since when none of it has expired, and the newest record that it may have. An
// event gets the completeness of the time of writing: if it is written again, more of its features may be complete.
func (e *Enricher) look(ctx context.Context) error {
	history, err := e.past.Get(ctx, time.Time{})
	if err == nil && history.Missing != nil { // unknown for some shards
		err = fmt.Errorf("read the history: %w", state.ErrUnavailable)
	}
	if err != nil {
		return err
	}
	usable := e.past.At(history, e.asked)
	e.stale = usable != history
	e.known.look(usable, e.past.Now(), e.alignment.Newest())
	return nil
}

// find finds the events to write. Events that some shard has applied are already written.
func (e *Enricher) find(b *Batch) {
	e.due = e.due[:0]
	for _, n := range b.Events {
		r := &b.Ranges[n.Range]
		if !r.Behind && n.offset >= state.Highest(r.Progress) {
			e.due = append(e.due, n)
		}
	}
}

// confirm checks whether the state that was read is the one that the batch continues from: if the progress after the
// read is still the known one, it did not change during the read, because it only grows. Otherwise another owner of a
// partition got further, or the store went back in time: then the range is marked Behind, and everything is read again
// without it. A range is also left out if a shard is found that could not be claimed: the state may have its events, and
// the partition must be claimed again.
func (e *Enricher) confirm(ctx context.Context, b *Batch) (confirmed bool, err error) {
	partitions := make([]state.Partition, len(b.Ranges))
	for i := range b.Ranges {
		partitions[i] = b.Ranges[i].Partition
	}
	progress, err := e.store.Progress(ctx, partitions)
	if err != nil {
		return false, err
	}
	confirmed = true
	for i := range b.Ranges {
		r := &b.Ranges[i]
		if len(progress[i]) != len(r.Progress) { // the namespace was spread over more shards
			confirmed = confirmed && r.Behind
			r.Behind = true
			continue
		}
		for shard, found := range progress[i] {
			switch known := r.Progress[shard]; {
			case r.Behind || found == known:
			case found.Continues(known, r.Epoch):
				r.Progress[shard] = found
				confirmed = false
			case !known.Exists() && r.Lags(shard):
				b.Fail(i, errAnswersAgain)
				confirmed = false
			default:
				r.Behind = true
				confirmed = false
			}
		}
	}
	return confirmed, nil
}

// errAnswersAgain is why a range is left out whose shards could not all be claimed.
var errAnswersAgain = errors.New("a server of the store answers again, its shards are to be claimed")

// ask answers those of the event's features that are asked before the event is added to the state, or those that are
// asked after.
func (e *Enricher) ask(ctx context.Context, n *Event, stored state.Snapshot, before bool) error {
	e.reading.Reset(n.now)
	e.reading.SetPresent(n.present(e.known.newest))
	e.reading.SetRemaining(e.known.remaining)
	e.reading.SetInHand(n.inHand)
	n.want(&e.reading, before)
	if err := e.reading.Read(ctx, query.SnapshotReader{State: stored}); err != nil {
		return err
	}
	for i := range n.wanted(before) {
		a := &n.answers[i]
		e.reading.NextSince(a, e.known.completeness(n.stream.features[i].Feature))
		if a.Err != nil {
			e.lacks(a)
		} else if n.entities[i].own != nil {
			a.TakeOnly()
		}
	}
	return nil
}

// lacks reports state that cannot be used for an answer, or a table that cannot.
func (e *Enricher) lacks(a *query.Answer) {
	what := "a table cannot answer"
	if a.Status == query.Damaged {
		e.metrics.Damaged.Inc()
		what = "state is damaged"
	}
	if now := time.Now(); now.Sub(e.complained) >= time.Second {
		e.complained = now
		e.log.Error(what+": an enriched event lacks a value", "error", a.Err)
		store.DebugKey(e.log, a.Err)
	}
}

// Write writes the answered events. If that fails, their ranges are left out of the batch: no
// progress may pass an event that was not written.
func (e *Enricher) Write(ctx context.Context, b *Batch) {
	e.due = slices.DeleteFunc(e.due, func(n *Event) bool { return b.Ranges[n.Range].Behind || e.written.has(n) })
	e.frame(ctx, b)
	if len(e.due) == 0 {
		return
	}
	failures := e.writer.write(ctx, e.due)
	for i, n := range e.due {
		if err := failures[i]; err != nil {
			b.Fail(n.Range, fmt.Errorf("write enriched events to %s: %w", n.stream.topic, err))
			continue
		}
		e.metrics.Written.WithLabelValues(n.stream.name).Inc()
	}
	for i, n := range e.due {
		switch r := &b.Ranges[n.Range]; {
		case !r.Behind && (i == 0 || e.due[i-1].Range != n.Range):
			e.written.forget(n.partition, r.To)
		case r.Behind && failures[i] == nil:
			e.written.add(n)
		}
	}
}
