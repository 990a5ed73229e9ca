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

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Enricher answers the events of batches, and writes them. It serves one
// goroutine.
//
// Events are written before their batch is applied. So no shard's progress
// passes an event that was not written, and those that some shard is beyond
// are not written again: the greatest progress of all shards says where to go
// on, whatever was killed. The answers are read from a state that lacks the
// batch, and the batch is added to them in memory, event by event, in the
// order of its records. Of the event's own partition they hold, whenever they
// are computed, exactly the events up to it.
//
// So do both hops of multi-hop features. Whose state the second
// one needs is found by adding the batch to a copy of the lists first: the
// members of each list as of each event, also those that only the batch brings.
// Their state is read in a second round trip, of the same progress, and then
// the batch is added to all of it at once.
type Enricher struct {
	store   store.Store
	writer  writer
	metrics Metrics
	log     *slog.Logger

	complained time.Time // when damaged state was logged last

	past  *History
	known known     // by the history that the batch was last told by
	asked time.Time // before the state was read last
	young bool      // something was filled since

	due     []*Event // of the batch, those to be written
	reading query.Reading
}

// New makes what enriches the batches of one worker. The client writes the events; the
// history is shared by the workers of a processor.
func New(s store.Store, h *History, client *kafka.Client, m Metrics, log *slog.Logger) *Enricher {
	return &Enricher{store: s, past: h, writer: writer{client}, metrics: m, log: log}
}

// Metrics count what is written.
type Metrics struct {
	Written *prometheus.CounterVec // events, by stream
	Damaged prometheus.Counter     // values that an event lacks because state is damaged
}

// Batch is a batch whose Events are to be written before it is applied.
type Batch struct {
	*state.Batch
	Events []*Event // in the order of their records
	// Fail leaves a source, by its place among the Ranges, out of the batch, and notes why.
	Fail func(source int, err error)
}

// Leave leaves a source out of the batch if it has events to be written.
func (b *Batch) Leave(source int, why error) {
	of := func(n *Event) bool { return n.Range == source }
	if !b.Ranges[source].Behind && slices.ContainsFunc(b.Events, of) {
		b.Fail(source, fmt.Errorf("its enriched events wait: %w", why))
	}
}

// Answer answers the batch's events. Those of partitions whose state cannot be read,
// because some masters do not answer, wait: their partitions are left out of the batch,
// and all others go on. An event is written before any later one of its partition, so
// none may be passed over. The error says that the store could not be reached at all.
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

// someAvailable says whether the master of any shard answers.
func (e *Enricher) someAvailable(ctx context.Context) bool {
	for shard := range e.store.Shards() {
		if e.store.Available(ctx, shard) == nil {
			return true
		}
	}
	return false
}

// answer makes the values of the batch's events that are to be written. The
// error says that the store could not be reached.
func (e *Enricher) answer(ctx context.Context, b *Batch) error {
	var state state.Snapshot
	for again := true; again; {
		var err error
		if state, err = e.read(ctx, b); err != nil || len(e.due) == 0 {
			return err
		}
		young := e.young
		if err := e.look(ctx); err != nil {
			return err
		}
		again = e.young && !young // what was filled is in what is read now
	}
	e.young = false
	failures := map[int]error{}
	adding := adding{batch: b, state: state}
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
	// Not before: to the last event the same is added as when the members were
	// looked for, or there would be others.
	for source, err := range failures {
		b.Fail(source, err)
	}
	return nil
}

// read reads the state that the batch's events are about, as it is before the batch.
func (e *Enricher) read(ctx context.Context, b *Batch) (stored state.Snapshot, err error) {
	for confirmed := false; !confirmed; {
		e.find(b)
		if len(e.due) == 0 {
			return nil, nil
		}
		e.reading.Reset(0)
		for _, n := range e.due {
			n.want(&e.reading, true)
			n.want(&e.reading, false)
		}
		e.asked = e.past.now()
		if stored, err = e.store.Follow(ctx, e.reading.Reads()); err != nil {
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

// look finds out since when the state that was read holds all events, and nothing of
// it has expired. An event is told what a question would be told now: when it is
// written again, its features may be complete that were not before.
func (e *Enricher) look(ctx context.Context) error {
	history, err := e.past.get(ctx)
	if err != nil {
		return err
	}
	told := e.past.whole.At(history, e.asked)
	e.young = told != history
	e.known.look(told, e.past.now())
	return nil
}

// find looks for the events that are to be written. Those that a shard has
// applied were written before.
func (e *Enricher) find(b *Batch) {
	e.due = e.due[:0]
	for _, n := range b.Events {
		s := &b.Ranges[n.Range]
		if !s.Behind && n.offset >= state.Highest(s.Progress) {
			e.due = append(e.due, n)
		}
	}
}

// confirm looks whether what was read is the state that the batch goes on from:
// where the progress is still the one known after the reading, it was so all
// the time, for it only grows. It is not where another owner of a
// partition has got further, nor where the store went back in time: then the
// source is marked Behind, and all is read anew without it.
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
		s := &b.Ranges[i]
		for shard, found := range progress[i] {
			switch known := s.Progress[shard]; {
			case s.Behind || found == known:
			case found.Continues(known, s.Epoch):
				s.Progress[shard] = found
				confirmed = false
			default:
				s.Behind = true
				confirmed = false
			}
		}
	}
	return confirmed, nil
}

// ask answers the event's features that are asked before it is added to the
// state, or after that.
func (e *Enricher) ask(ctx context.Context, n *Event, stored state.Snapshot, before bool) error {
	e.reading.Reset(n.now)
	e.reading.Held(e.known.held)
	n.want(&e.reading, before)
	if err := e.reading.Read(ctx, query.Followed{State: stored}); err != nil {
		return err
	}
	for i := range n.wanted(before) {
		a := &n.answers[i]
		e.reading.NextSince(a, e.known.completeness(n.stream.features[i].Feature))
		if a.Err != nil {
			e.damaged(a.Err)
		} else if before {
			a.Value, a.Items = a.Items[0].Value, nil
		}
	}
	return nil
}

// damaged tells of state that an answer cannot be had from.
func (e *Enricher) damaged(err error) {
	e.metrics.Damaged.Inc()
	if now := time.Now(); now.Sub(e.complained) >= time.Second {
		e.complained = now
		e.log.Error("state is damaged: an enriched event lacks a value", "error", err)
		store.DebugKey(e.log, err)
	}
}

// Write writes the events that were answered. Where that fails their sources
// are left out of the batch: no progress may pass an event that was not written.
func (e *Enricher) Write(ctx context.Context, b *Batch) {
	e.due = slices.DeleteFunc(e.due, func(n *Event) bool { return b.Ranges[n.Range].Behind })
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
}
