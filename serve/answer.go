package serve

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// answer answers the question in q.request, and leaves the response in q.out.
func (h *handler) answer(ctx context.Context, q *question, in codec) error {
	x := q.indexFor(h)
	if err := q.decode(x, h.Limits); err != nil {
		return err
	}
	if err := q.nameEntities(); err != nil {
		return err
	}
	h.metrics.ask(q)
	if err := q.hold(ctx, reading, int64(readSize*q.distinct()*q.cost())); err != nil {
		return err
	}
	if err := q.waitForEvent(ctx, h); err != nil {
		return err
	}
	if err := q.findOldest(ctx, h.Reader); err != nil {
		return err
	}
	in.addReads(q)
	history, err := h.readWithHistory(ctx, q)
	if err != nil {
		return err
	}
	other, err := q.readsOther(h)
	if err == nil && (q.outdated || other) {
		in.addReads(q) // what was filled is in the state that is read now
		history, err = h.readWithHistory(ctx, q)
	}
	if err != nil {
		return err
	}
	return in.encode(q, ctx, history)
}

// readWithHistory reads what the question needs, and the history of the plans that wrote it.
func (h *handler) readWithHistory(ctx context.Context, q *question) (*state.History, error) {
	began := h.Now()
	staleness, err := h.readState(ctx, q)
	if err != nil {
		return nil, err
	}
	// After the state: the history then includes everything applied before. It is read from the master, even if a
	// replica has answered.
	history, err := h.history.get(ctx, time.Time{})
	if err == nil && q.applied && history != nil && !history.Applied(q.wait.partition.Topic) {
		// The shared history is older than the topic's first record, for which the question has waited.
		history, err = h.history.get(ctx, q.appliedAt)
	}
	if err != nil {
		return nil, &storeError{err}
	}
	if history != nil && history.Missing != nil {
		q.reading.Lose(history.Missing)
	}
	// The state that was read may lack what was filled meanwhile.
	usable := h.history.whole.At(history, began.Add(-staleness))
	q.outdated = usable != history
	return usable, nil
}

// readState reads what the question needs, from replicas if they may answer it. If it has waited for an event, it reads
// from masters. It returns an upper bound of the state's age.
func (h *handler) readState(ctx context.Context, q *question) (time.Duration, error) {
	var freshness state.Freshness
	reader := storeReader{h.Reader, q.pending, nil}
	if h.FromReplicas && q.wait == nil {
		reader.freshness = &freshness
	}
	if err := q.reading.Read(ctx, h.tracing.reader(reader, q)); err != nil || !h.FromReplicas {
		return 0, err
	}
	q.readFrom = q.readFrom[:0]
	if !freshness.Replica {
		q.readFrom = append(q.readFrom, `,"read_from":"master"`...)
		return 0, nil
	}
	h.metrics.staleness.Observe(freshness.Staleness.Seconds())
	q.readFrom = append(q.readFrom, `,"read_from":"replica","staleness_ms":`...)
	// Round up, because it is a bound.
	q.readFrom = strconv.AppendInt(q.readFrom, (freshness.Staleness + time.Millisecond - 1).Milliseconds(), 10)
	return freshness.Staleness, nil
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

// addReads lists the reads. Before findOldest has found the features that cannot answer, it lists the reads of all
// features.
func (q *question) addReads() {
	q.reading.Reset(q.now)
	q.reading.SetPresent(q.present)
	q.frames = q.frames[:0]
	for i, f := range q.asked {
		if len(q.oldest) == 0 || q.oldest[i] == answerable {
			q.frames = append(q.frames, framed{q.reading.Frame(f, q.at), q.set[i]})
		}
	}
	texts := string(q.texts.bytes)
	for e := range q.entities {
		if q.first[e] != e {
			continue
		}
		for _, f := range q.frames {
			if q.lacksKey(e, f.set) {
				continue
			}
			from, to := q.texts.bounds(e*len(q.sets) + f.set)
			q.reading.WantFramed(f.number, texts[from:to])
		}
	}
}

// encode computes the answers and writes the response. It fails if the response is too large, or if
// there is no memory for it.
func (q *question) encode(ctx context.Context, history *state.History) error {
	q.complete(history)
	out := append(q.out, `{"at":`...)
	out = strconv.AppendInt(out, q.at, 10)
	if q.pending != nil {
		out = append(out, `,"pending":`...)
		out = q.appendOutcomes(out)
	}
	out = append(out, q.waited...)
	out = append(out, q.readFrom...)
	out = append(out, `,"results":[`...)
	var a query.Answer
	q.coverages.Reset()
	for e := range q.entities {
		if e > 0 {
			out = append(out, ',')
		}
		from, to := q.echoes.bounds(e)
		out = append(out, `{"entity":`...)
		out = append(out, q.echoes.bytes[from:to]...)
		out = append(out, `,"features":{`...)
		if first := q.first[e]; first != e {
			out = append(out, out[q.written[first].from:q.written[first].to]...)
			if err := q.fits(ctx, len(out)); err != nil {
				return err
			}
			continue
		}
		q.written[e].from = len(out)
		for i, p := range q.features {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, p.label...)
			q.next(&a, e, i)
			out = q.appendAnswer(out, &a, i)
			if err := q.fits(ctx, len(out)); err != nil {
				return err
			}
		}
		out = append(out, "}}"...)
		q.written[e].to = len(out)
	}
	q.out = append(out, "]}\n"...)
	return nil
}

// appendAnswer appends an answer of feature i.
func (q *question) appendAnswer(dst []byte, a *query.Answer, i int) []byte {
	if first, end := q.members.of(i); first < end && a.Items != nil {
		return q.appendMembers(dst, a, first)
	}
	return a.AppendJSONAfter(dst, &q.coverages)
}

// fits refuses an answer that is too long, and queues for the memory of a long one. Repeated content, such as a long
// value of a pending event, is in the answer once for each entity, so the number of values alone does not bound memory.
func (q *question) fits(ctx context.Context, bytes int) error {
	switch {
	case bytes <= freeAnswer:
		return nil
	case int64(bytes) <= q.most:
		return q.hold(ctx, sending, q.most)
	}
	return reply.Errorf(reply.AnswerTooLarge, "the answer has more than %d bytes; ask about fewer entities, features or members at once", q.most)
}

// next fills in the next answer, of feature i of entity e.
func (q *question) next(a *query.Answer, e, i int) {
	switch {
	case q.lacksKey(e, q.set[i]): // there are no events of nobody; like an enriched event that lacks the key
		*a = query.Answer{Status: query.NotFound, Exact: true, CompleteSince: state.MinTime}
	case q.oldest[i] == answerable:
		q.reading.NextSince(a, q.since[i])
		q.noteUnread(a)
		return
	default:
		*a = query.Answer{Status: query.OutsideMaxAge, Oldest: q.oldest[i], CompleteSince: state.MinTime}
	}
	a.From, a.To = query.Covers(q.features[i].Feature, q.at, q.now)
}

// noteUnread records an answer whose state could not be read.
func (q *question) noteUnread(a *query.Answer) {
	switch a.Status {
	case query.Unavailable:
		q.unavailable++
	case query.Damaged:
		if q.damaged++; q.damaged == 1 {
			q.damage = a.Err
		}
	}
}
