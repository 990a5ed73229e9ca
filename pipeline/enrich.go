package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

// The headers of an enriched event, behind those that its record came with.
const (
	headerSourceStream    = "weir-stream"
	headerSourceTopic     = "weir-source-topic"
	headerSourcePartition = "weir-source-partition"
	headerSourceOffset    = "weir-source-offset"
)

// enrichPlan is what is told of the events of one stream.
type enrichPlan struct {
	stream   string
	topic    string
	features []enrichFeature
}

type enrichFeature struct {
	*features.Feature
	keys    []string // sorted
	label   []byte   // its name in JSON, with a colon
	through bool     // it, or a part of it, is of the second degree
}

// enrichPlans are those of the streams that are enriched.
func enrichPlans(r *features.Registry) map[*record.Stream]*enrichPlan {
	plans := map[*record.Stream]*enrichPlan{}
	for _, e := range r.Enrichments {
		plan := &enrichPlan{stream: e.Stream.Name, topic: e.Topic}
		for _, f := range e.Service.Features {
			plan.features = append(plan.features, enrichFeature{
				Feature: f, keys: slices.Sorted(slices.Values(f.By)), label: append(query.AppendString(nil, f.Name), ':'),
				through: f.FanOut() > 0,
			})
		}
		plans[e.Stream] = plan
	}
	return plans
}

// enriched is an event on its way to a topic of enriched events.
type enriched struct {
	plan      *enrichPlan
	source    int // in the batch
	partition state.Partition
	offset    int64
	// before is how many of the batch's Updates those before the event have made,
	// and touched how many they and the event have.
	before, touched int
	at, now         int64    // the event's time and its record's, in milliseconds
	entities        []entity // by feature
	answers         []query.Answer

	key, event []byte // as the record had them
	headers    []kafka.Header
	value      []byte // of the record to be written
}

// entity is what a feature is asked about.
type entity struct {
	text string
	// own is the feature where it is asked whether the entity has met the event's
	// own value before; else nil.
	own *features.Feature
	// without is the status where there is nothing to ask: the event lacks one of
	// the keys or the value to ask about, or came so late that state of its time
	// may be gone. It goes by the record alone, so that it is the same whenever it
	// is written.
	without query.Status
}

// newEnriched copies what is needed of an event.
func newEnriched(plan *enrichPlan, e *record.Event, p state.Partition, rec *fetch.Record) *enriched {
	n := &enriched{
		plan: plan, partition: p, offset: rec.Offset, at: e.Time, now: e.Now,
		entities: make([]entity, len(plan.features)),
		key:      bytes.Clone(rec.Key), event: bytes.Clone(bytes.TrimSpace(rec.Value)),
		headers: append(headersOf(rec),
			kafka.Header{Key: headerSourceStream, Value: []byte(plan.stream)},
			kafka.Header{Key: headerSourceTopic, Value: []byte(p.Topic)},
			kafka.Header{Key: headerSourcePartition, Value: strconv.AppendInt(nil, int64(p.ID), 10)},
			kafka.Header{Key: headerSourceOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)}),
	}
	var text []byte
	for i, f := range plan.features {
		var named bool
		text, named = e.Entity(text[:0], f.keys)
		switch {
		case !named:
			n.entities[i].without = query.NotFound
		case f.Forgets() && e.Time < e.Now-f.Keep.Milliseconds():
			n.entities[i].without = query.OutsideMaxAge
		default:
			n.entities[i].text = string(text)
		}
		if f.Membership() == aggregate.MembersNeeded && n.entities[i].without == "" {
			n.entities[i].ask(f.Feature, f.Own(e))
		}
	}
	return n
}

// ask asks a feature about the event's own value.
func (e *entity) ask(f *features.Feature, own value.Value) {
	if own.IsNull() {
		e.without = query.NullValue
		return
	}
	own.Str = bytes.Clone(own.Str)
	e.own = f.AskedAbout([]value.Value{own})
}

// wanted are the event's features that are asked before it is added to the
// state, or after that.
func (n *enriched) wanted(before bool) iter.Seq2[int, *features.Feature] {
	return func(yield func(int, *features.Feature) bool) {
		for i, f := range n.plan.features {
			e := &n.entities[i]
			asked := f.Feature
			if e.own != nil {
				asked = e.own
			}
			if e.without == "" && (e.own != nil) == before && !yield(i, asked) {
				return
			}
		}
	}
}

// want asks for features of the event.
func (n *enriched) want(r *query.Reading, before bool) {
	for i, f := range n.wanted(before) {
		r.Want(f, n.entities[i].text, n.at)
	}
}

// wantThrough asks for the features of the event that go through a list.
func (n *enriched) wantThrough(r *query.Reading) {
	for i, f := range n.wanted(false) {
		if n.plan.features[i].through {
			r.Want(f, n.entities[i].text, n.at)
		}
	}
}

// record is the event as it is written. Its time is that of the event's record,
// so that it is the same whenever it is written.
func (n *enriched) record() kafka.Record {
	return kafka.Record{
		Key: kafka.NewBytes(n.key), Value: kafka.NewBytes(n.value), Headers: n.headers, Time: time.UnixMilli(n.now),
	}
}

// size is about how many bytes the record takes.
func (n *enriched) size() int {
	const rest = 64 // lengths, offset and time
	size := rest + len(n.key) + len(n.value)
	for _, h := range n.headers {
		size += len(h.Key) + len(h.Value)
	}
	return size
}

// enricher answers the events of batches, and writes them. It serves one
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
// So do both hops of features of the second degree. Whose state the second
// one needs is found by adding the batch to a copy of the lists first: the
// members of each list as of each event, also those that only the batch brings.
// Their state is read in a second round trip, of the same progress, and then
// the batch is added to all of it at once.
type enricher struct {
	store   store.Store
	writer  enrichedWriter
	metrics *metrics
	log     *slog.Logger

	complained time.Time // when damaged state was logged last

	past  *past
	known known // by the history that the batch was last told by

	due     []*enriched // of the batch, those to be written
	reading query.Reading
}

// answerOrLeave answers the batch's events. Those of partitions whose state cannot be
// read whole, because some masters do not answer, wait: their partitions are left out
// of the batch, and all others go on. An event is written before any later one of its
// partition, so none may be passed over.
func (e *enricher) answerOrLeave(ctx context.Context, b *batch) error {
	for i := range b.Ranges {
		if s := &b.Ranges[i]; slices.Contains(s.Lagging, true) {
			// Its state lacks events that come before those of the batch.
			e.leave(b, i, &LaggingError{Shards: countTrue(s.Lagging), Offset: state.Lowest(s.Progress), Err: errNotApplied})
		}
	}
	err := e.answer(ctx, b)
	if !errors.Is(err, state.ErrUnavailable) || !e.someAvailable(ctx) {
		return err
	}
	for i := range b.Ranges {
		e.leave(b, i, err)
	}
	return nil
}

// leave leaves a source out of the batch that has events to be written.
func (e *enricher) leave(b *batch, source int, why error) {
	wanted := func(n *enriched) bool { return n.source == source }
	if !b.Ranges[source].Behind && slices.ContainsFunc(b.enriched, wanted) {
		b.fail(source, fmt.Errorf("its enriched events wait: %w", why))
	}
}

// someAvailable says whether the master of any shard answers.
func (e *enricher) someAvailable(ctx context.Context) bool {
	for shard := range e.store.Shards() {
		if e.store.Available(ctx, shard) == nil {
			return true
		}
	}
	return false
}

func countTrue(list []bool) (n int) {
	for _, is := range list {
		if is {
			n++
		}
	}
	return n
}

// answer makes the values of the batch's events that are to be written. The
// error says that the store could not be reached.
func (e *enricher) answer(ctx context.Context, b *batch) error {
	var state state.Snapshot
	for settled := false; !settled; {
		e.find(b)
		if len(e.due) == 0 {
			return nil
		}
		e.reading.Reset(0)
		for _, n := range e.due {
			n.want(&e.reading, true)
			n.want(&e.reading, false)
		}
		var err error
		if state, err = e.store.Follow(ctx, e.reading.Reads()); err != nil {
			return err
		}
		if err = state.Extend(ctx, e.members(ctx, b, state)); err != nil {
			return err
		}
		if settled, err = e.settle(ctx, b); err != nil {
			return err
		}
	}
	if err := e.look(ctx); err != nil {
		return err
	}
	failures := map[int]error{}
	adding := adding{batch: b, state: state}
	for _, n := range e.due {
		n.answers = make([]query.Answer, len(n.plan.features))
		adding.upTo(n.before)
		err := e.ask(ctx, n, state, true)
		adding.upTo(n.touched)
		if err == nil {
			err = e.ask(ctx, n, state, false)
		}
		if err != nil {
			failures[n.source] = err
			continue
		}
		n.encode()
	}
	// Not before: to the last event the same is added as when the members were
	// looked for, or there would be others.
	for source, err := range failures {
		b.fail(source, err)
	}
	return nil
}

// look finds out since when the state that was read holds all events, and nothing of
// it has expired. An event is told what a question would be told now: when it is
// written again, its features may be complete that were not before.
func (e *enricher) look(ctx context.Context) error {
	history, err := e.past.get(ctx)
	if err != nil {
		return err
	}
	e.known.look(history, e.past.now())
	return nil
}

// members are the reads of the members that the events to be written go
// through, each series of a member once, of whatever tiles.
func (e *enricher) members(ctx context.Context, b *batch, stored state.Snapshot) []state.Read {
	e.reading.Reset(0)
	for _, n := range e.due {
		n.wantThrough(&e.reading)
	}
	if len(e.reading.Reads()) == 0 {
		return nil
	}
	var reads []state.Read
	known := map[state.Read]bool{}
	adding := adding{batch: b, state: stored.Copy(e.reading.Reads())}
	for _, n := range e.due {
		adding.upTo(n.touched)
		e.reading.Reset(n.now)
		n.wantThrough(&e.reading)
		lists := len(e.reading.Reads())
		if e.reading.ReadLists(ctx, query.Followed{State: adding.state}) != nil {
			continue // the event's answers meet the same, and tell of it
		}
		for _, r := range e.reading.Reads()[lists:] {
			member := state.Read{Series: r.Series, Entity: r.Entity}
			if !known[member] {
				known[member] = true
				reads = append(reads, member)
			}
		}
	}
	return reads
}

// adding is a batch on its way into what is followed, in the order of its
// records and without what the store has applied.
type adding struct {
	batch *batch
	state state.Snapshot
	added int // how many of the batch's Updates
}

// upTo adds what the first so many of the batch's Updates do.
func (a *adding) upTo(touched int) {
	for ; a.added < touched; a.added++ {
		t := &a.batch.Updates[a.added]
		s := &a.batch.Ranges[t.Source]
		if !s.Behind && t.Offset >= s.Progress[state.Shard(t.Hash, len(s.Progress))].Offset {
			a.state.Add(&a.batch.Batch, t)
		}
	}
}

// find looks for the events that are to be written. Those that a shard has
// applied were written before.
func (e *enricher) find(b *batch) {
	e.due = e.due[:0]
	for _, n := range b.enriched {
		s := &b.Ranges[n.source]
		if !s.Behind && n.offset >= state.Highest(s.Progress) {
			e.due = append(e.due, n)
		}
	}
}

// settle looks whether what was read is the state that the batch goes on from:
// where the progress is still the one known after the reading, it was so all
// the time, for it only grows. It is not settled where another owner of a
// partition has got further, nor where the store went back in time: then the
// source is marked Behind, and all is read anew without it.
func (e *enricher) settle(ctx context.Context, b *batch) (settled bool, err error) {
	partitions := make([]state.Partition, len(b.Ranges))
	for i := range b.Ranges {
		partitions[i] = b.Ranges[i].Partition
	}
	progress, err := e.store.Progress(ctx, partitions)
	if err != nil {
		return false, err
	}
	settled = true
	for i := range b.Ranges {
		s := &b.Ranges[i]
		for shard, found := range progress[i] {
			switch known := s.Progress[shard]; {
			case s.Behind || found == known:
			case found.Continues(known, s.Epoch):
				s.Progress[shard] = found
				settled = false
			default:
				s.Behind = true
				settled = false
			}
		}
	}
	return settled, nil
}

// ask answers the event's features that are asked before it is added to the
// state, or after that.
func (e *enricher) ask(ctx context.Context, n *enriched, stored state.Snapshot, before bool) error {
	e.reading.Reset(n.now)
	e.reading.Held(e.known.held)
	n.want(&e.reading, before)
	if err := e.reading.Read(ctx, query.Followed{State: stored}); err != nil {
		return err
	}
	for i := range n.wanted(before) {
		a := &n.answers[i]
		e.reading.NextSince(a, e.known.completeness(n.plan.features[i].Feature))
		if a.Err != nil {
			e.damaged(a.Err)
		} else if before {
			a.Value, a.Items = a.Items[0].Value, nil
		}
	}
	return nil
}

// damaged tells of state that an answer cannot be had from.
func (e *enricher) damaged(err error) {
	e.metrics.damaged.Inc()
	if now := time.Now(); now.Sub(e.complained) >= time.Second {
		e.complained = now
		e.log.Error("state is damaged: an enriched event lacks a value", "error", err)
		if named, ok := errors.AsType[namesKey](err); ok {
			e.log.Debug("it is about a key", "key", named.Key())
		}
	}
}

// encode makes the value of the event's record from its answers.
func (n *enriched) encode() {
	out := make([]byte, 0, len(n.event)+128*(len(n.plan.features)+1))
	out = append(out, `{"event":`...)
	out = append(out, n.event...)
	out = append(out, `,"features":{`...)
	for i, f := range n.plan.features {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, f.label...)
		if without := n.entities[i].without; without != "" {
			out = append(out, `{"value":null,"status":"`+without+`"}`...)
			continue
		}
		out = n.answers[i].AppendJSON(out)
	}
	n.value = append(out, "}}"...)
}

// write writes the events that were answered. Where that fails their sources
// are left out of the batch: no progress may pass an event that was not written.
func (e *enricher) write(ctx context.Context, b *batch) {
	e.due = slices.DeleteFunc(e.due, func(n *enriched) bool { return b.Ranges[n.source].Behind })
	if len(e.due) == 0 {
		return
	}
	failures := e.writer.write(ctx, e.due)
	for i, n := range e.due {
		if err := failures[i]; err != nil {
			b.fail(n.source, fmt.Errorf("write enriched events to %s: %w", n.plan.topic, err))
			continue
		}
		e.metrics.enriched.WithLabelValues(n.plan.stream).Inc()
	}
}
