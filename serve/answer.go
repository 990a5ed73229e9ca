package serve

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// found is what was read for a question.
type found struct {
	// reading has an answer for each feature of each entity. frames are the frames of the features that can be answered.
	reading query.Reading
	frames  []framed
	points  int // of a timeline
	// oldest is by feature the oldest moment that can be asked about, or answerable.
	oldest []int64
	since  []*query.Completeness // by feature

	waited    []byte    // the outcome of the wait, in JSON
	applied   bool      // the event is applied, as found at
	appliedAt time.Time // this moment
	outdated  bool      // something was filled after the state was read
	readFrom  []byte    // where the state was read, in JSON, unless all was read from masters, and how old the tables are
}

// framed is a feature's frame of a query.Reading, and its key set.
type framed struct{ number, set int }

func (f *found) reset() {
	f.reading.Reset(0)
	*f = found{
		reading: f.reading, frames: f.frames[:0], oldest: f.oldest[:0], since: emptied(f.since),
		waited: f.waited[:0], readFrom: f.readFrom[:0],
	}
}

// answer answers the question that was sent, and leaves the response in q.answer.
func (h *handler) answer(ctx context.Context, q *question, in codec) error {
	a, f := &q.asked, &q.found
	q.request.viewOf(h)
	if err := a.understand(&q.request, h.Limits); err != nil {
		return err
	}
	h.metrics.ask(a)
	if err := q.held.hold(ctx, reading, int64(readSize*a.entities.distinct()*a.cost())); err != nil {
		return err
	}
	if err := h.waitForEvent(ctx, a, f); err != nil {
		return err
	}
	if err := f.findOldest(ctx, a, h.Reader); err != nil {
		return err
	}
	if h.Tables != nil {
		f.reading.SetTables(h.Tables)
	}
	in.addReads(f, a)
	history, err := h.readWithHistory(ctx, a, f)
	if err != nil {
		return err
	}
	other, err := a.readsOther(h)
	if err == nil && (f.outdated || other) {
		in.addReads(f, a) // what was filled is in the state that is read now
		history, err = h.readWithHistory(ctx, a, f)
	}
	if err != nil {
		return err
	}
	f.complete(a, history)
	f.appendTableLag(a, h.Tables, h.Now())
	q.answer.asked, q.answer.found, q.answer.held, q.answer.most = a, f, &q.held, h.Limits.Answer
	return in.encode(&q.answer, ctx)
}

// readWithHistory reads what the question needs, and the history of the plans that wrote it.
func (h *handler) readWithHistory(ctx context.Context, q *asked, f *found) (*state.History, error) {
	began := h.Now()
	staleness, err := h.readState(ctx, q, f)
	if err != nil {
		return nil, err
	}
	// After the state: the history then includes everything applied before. It is read from the master, even if a
	// replica has answered.
	history, err := h.history.Get(ctx, time.Time{})
	if err == nil && f.applied && history != nil && !history.Applied(q.wait.partition.Topic) {
		// The shared history is older than the topic's first record, for which the question has waited.
		history, err = h.history.Get(ctx, f.appliedAt)
	}
	if err != nil {
		return nil, &storeError{err}
	}
	if history != nil && history.Missing != nil {
		f.reading.Lose(history.Missing)
	}
	// The state that was read may lack what was filled meanwhile.
	usable := h.history.At(history, began.Add(-staleness))
	f.outdated = usable != history
	return usable, nil
}

// readState reads what the question needs, from replicas if they may answer it. If it has waited for an event, it reads
// from masters. It returns an upper bound of the state's age.
func (h *handler) readState(ctx context.Context, q *asked, f *found) (time.Duration, error) {
	var freshness state.Freshness
	reader := storeReader{h.Reader, q.pending.batch, nil}
	if h.FromReplicas && q.wait == nil {
		reader.freshness = &freshness
	}
	if err := f.reading.Read(ctx, h.tracing.reader(reader, q)); err != nil || !h.FromReplicas {
		return 0, err
	}
	f.readFrom = f.readFrom[:0]
	if !freshness.Replica {
		f.readFrom = append(f.readFrom, `,"read_from":"master"`...)
		return 0, nil
	}
	h.metrics.staleness.Observe(freshness.Staleness.Seconds())
	f.readFrom = append(f.readFrom, `,"read_from":"replica","staleness_ms":`...)
	// Round up, because it is a bound.
	f.readFrom = strconv.AppendInt(f.readFrom, (freshness.Staleness + time.Millisecond - 1).Milliseconds(), 10)
	return freshness.Staleness, nil
}

// appendTableLag says how old the oldest is of the tables that the answers look up, if there are any. One that is not whole says
// so in the answers.
func (f *found) appendTableLag(q *asked, tables Tables, now time.Time) {
	oldest := time.Duration(-1)
	for _, p := range q.features {
		for _, t := range p.tables {
			if tables != nil {
				oldest = max(oldest, tables.Age(t, now))
			}
		}
	}
	if oldest >= 0 {
		f.readFrom = append(f.readFrom, `,"table_lag_ms":`...)
		f.readFrom = strconv.AppendInt(f.readFrom, (oldest + time.Millisecond - 1).Milliseconds(), 10)
	}
}

// storeReader marks its errors as the store's. It reads as if pending events had been applied.
type storeReader struct {
	store     store.Reader
	pending   *state.Batch     // nil for none
	freshness *state.Freshness // if set, replicas may answer, and it receives the age of their state
}

func (r storeReader) Read(ctx context.Context, reads []state.Read) (states []state.WindowState, err error) {
	var freshness state.Freshness
	switch {
	case r.freshness != nil:
		states, freshness, err = r.store.ReadReplica(ctx, reads, r.pending)
	case r.pending != nil:
		states, err = r.store.ReadOverlay(ctx, reads, r.pending)
	default:
		states, err = r.store.Read(ctx, reads)
	}
	if err != nil {
		return nil, &storeError{err}
	}
	if r.freshness != nil {
		*r.freshness = r.freshness.With(freshness)
	}
	return states, nil
}

// begin begins a reading.
func (f *found) begin(q *asked) {
	f.reading.Reset(q.now)
	f.reading.SetPresent(q.present)
}

// addReads lists the reads. Before findOldest has found the features that cannot answer, it lists the reads of all
// features.
func (f *found) addReads(q *asked) {
	f.begin(q)
	f.frames = f.frames[:0]
	for i, about := range q.about {
		if len(f.oldest) == 0 || f.oldest[i] == answerable {
			f.frames = append(f.frames, framed{f.reading.Frame(about, q.at), q.set[i]})
		}
	}
	texts := string(q.entities.texts.bytes)
	for e, first := range q.entities.first {
		if first != e {
			continue
		}
		for _, frame := range f.frames {
			if q.entities.lacksKey(e, frame.set) {
				continue
			}
			from, to := q.entities.texts.bounds(e*len(q.sets) + frame.set)
			f.reading.WantFramed(frame.number, texts[from:to])
		}
	}
}

// answer is the response to a question.
type answer struct {
	asked *asked
	found *found
	held  *held

	out  []byte
	most int64 // bytes of out
	// written is, by entity, where its features are in out, for entities with the same texts.
	written   []bounds
	coverages query.Coverages

	// damaged counts the answers that damaged state prevented, and damage is the first error.
	damaged int
	damage  error
	// unavailable counts the answers that an unavailable master prevented.
	unavailable int
}

// bounds are the bounds of a range of bytes.
type bounds struct{ from, to int }

func (w *answer) reset() {
	w.coverages.Reset()
	*w = answer{out: w.out[:0], written: w.written[:0], coverages: w.coverages}
}

// encode computes the answers and writes the response. It fails if the response is too large, or if
// there is no memory for it.
func (w *answer) encode(ctx context.Context) error {
	q, f := w.asked, w.found
	out := append(w.out, `{"at":`...)
	out = strconv.AppendInt(out, q.at, 10)
	if q.pending.batch != nil {
		out = append(out, `,"pending":`...)
		out = q.pending.appendOutcomes(out, f.reading.Reads())
	}
	out = append(out, f.waited...)
	out = append(out, f.readFrom...)
	out = append(out, `,"results":[`...)
	var a query.Answer
	w.written = slices.Grow(w.written[:0], len(q.entities.sent))[:len(q.entities.sent)]
	for e, first := range q.entities.first {
		if e > 0 {
			out = append(out, ',')
		}
		from, to := q.entities.echoes.bounds(e)
		out = append(out, `{"entity":`...)
		out = append(out, q.entities.echoes.bytes[from:to]...)
		out = append(out, `,"features":{`...)
		if first != e {
			out = append(out, out[w.written[first].from:w.written[first].to]...)
			if err := w.fits(ctx, len(out)); err != nil {
				return err
			}
			continue
		}
		w.written[e].from = len(out)
		for i, p := range q.features {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, p.label...)
			w.next(&a, e, i)
			out = w.appendAnswer(out, &a, i)
			if err := w.fits(ctx, len(out)); err != nil {
				return err
			}
		}
		out = append(out, "}}"...)
		w.written[e].to = len(out)
	}
	w.out = append(out, "]}\n"...)
	return nil
}

// appendAnswer appends an answer of feature i.
func (w *answer) appendAnswer(dst []byte, a *query.Answer, i int) []byte {
	members := &w.asked.members
	if first, end := members.of(i); first < end {
		return members.append(dst, a, first, end, &w.coverages)
	}
	return a.AppendJSONAfter(dst, &w.coverages)
}

// fits refuses an answer that is too long, and queues for the memory of a long one. Repeated content, such as a long
// value of a pending event, is in the answer once for each entity, so the number of values alone does not bound memory.
func (w *answer) fits(ctx context.Context, bytes int) error {
	switch {
	case bytes <= freeAnswer:
		return nil
	case int64(bytes) <= w.most:
		return w.held.hold(ctx, sending, w.most)
	}
	return reply.Errorf(reply.AnswerTooLarge, "the answer has more than %d bytes; ask about fewer entities, features or members at once", w.most)
}

// next fills in the next answer, of feature i of entity e.
func (w *answer) next(a *query.Answer, e, i int) {
	q, f := w.asked, w.found
	switch {
	case q.entities.lacksKey(e, q.set[i]): // there are no events of nobody; like an enriched event that lacks the key
		*a = query.Answer{Status: query.NotFound, Exact: true, CompleteSince: state.MinTime}
	case f.oldest[i] == answerable:
		if q.features[i].InHand != nil {
			f.reading.SetInHand(q.inHand(e, i))
		}
		f.reading.NextSince(a, f.since[i])
		w.noteUnread(a)
		return
	default:
		*a = query.Answer{Status: query.OutsideMaxAge, Oldest: f.oldest[i], CompleteSince: state.MinTime}
	}
	a.From, a.To = query.Covers(q.features[i].Feature, q.at, q.now)
}

// noteUnread records an answer whose state could not be read.
func (w *answer) noteUnread(a *query.Answer) {
	switch a.Status {
	case query.Unavailable:
		w.unavailable++
	case query.Damaged:
		if w.damaged++; w.damaged == 1 {
			w.damage = a.Err
		}
	}
}
