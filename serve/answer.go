package serve

import (
	"context"
	"strconv"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// answer answers the question in q.body; encode leaves the response in q.out.
func (h *handler) answer(ctx context.Context, q *question, encode func(*question, *kinds.History) error) error {
	x := h.index()
	if err := q.decode(x, h.limits); err != nil {
		return err
	}
	if err := q.identify(); err != nil {
		return err
	}
	h.metrics.ask(q)
	ctx, cancel := context.WithTimeout(ctx, h.limits.Timeout)
	defer cancel()
	if err := q.reach(ctx, h.Reader); err != nil {
		return err
	}
	q.plan()
	if q.wait != nil {
		if err := q.await(ctx, h); err != nil {
			return err
		}
	}
	reader := h.reader
	if q.pending != nil {
		reader = storeReader{h.Reader, q.pending}
	}
	if err := q.reading.Read(ctx, reader); err != nil {
		return err
	}
	// After the state: what was applied to it before is in the history then.
	history, err := h.history.get(ctx)
	if err != nil {
		return &storeError{err}
	}
	return encode(q, history)
}

// storeReader is a reader whose errors are the store's. It reads as if what is
// pending had been applied.
type storeReader struct {
	Reader
	pending *kinds.Batch // nil for none
}

func (r storeReader) Read(ctx context.Context, reads []kinds.Read) (slices []kinds.Slice, err error) {
	if r.pending == nil {
		slices, err = r.Reader.Read(ctx, reads)
	} else {
		slices, err = r.ReadAsIf(ctx, reads, r.pending)
	}
	if err != nil {
		return nil, &storeError{err}
	}
	return slices, nil
}

// plan lists what must be read.
func (q *question) plan() {
	q.reading.Reset(q.now)
	texts := string(q.texts.bytes)
	for e := range q.entities {
		for i := range q.plans {
			if q.oldest[i] != reached {
				continue
			}
			from, to := q.texts.bounds(e*len(q.sets) + q.set[i])
			q.reading.Want(q.asked[i], texts[from:to], q.at)
		}
	}
}

// encode folds what was read and writes the response. The error is that the
// store holds what cannot be read.
func (q *question) encode(history *kinds.History) error {
	q.since = q.since[:0]
	for _, p := range q.plans {
		q.since = append(q.since, p.completeSince(history))
	}
	out := append(q.out, `{"at":`...)
	out = strconv.AppendInt(out, q.at, 10)
	if q.pending != nil {
		out = append(out, `,"pending":`...)
		out = append(out, q.outcomes...)
	}
	out = append(out, q.waited...)
	out = append(out, `,"results":[`...)
	for e := range q.entities {
		if e > 0 {
			out = append(out, ',')
		}
		from, to := q.echoes.bounds(e)
		out = append(out, `{"entity":`...)
		out = append(out, q.echoes.bytes[from:to]...)
		out = append(out, `,"features":{`...)
		for i, p := range q.plans {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, p.label...)
			a, err := q.next(i)
			if err != nil {
				return err
			}
			if a.Oldest != nil {
				out = a.AppendJSON(out)
				continue
			}
			q.complete(&a, i)
			if first, end := q.members.of(i); first < end {
				out = q.appendMembers(out, &a, first)
			} else {
				out = a.AppendJSON(out)
			}
			if err := q.fits(len(out)); err != nil {
				return err
			}
		}
		out = append(out, "}}"...)
	}
	q.out = append(out, "]}\n"...)
	return nil
}

// fits refuses an answer that has got too many bytes. What a question repeats,
// such as a long value of a pending event, stands in the answer once for each
// entity, so the number of values alone bounds no memory.
func (q *question) fits(bytes int) error {
	if int64(bytes) <= q.most {
		return nil
	}
	return errorf(AnswerTooLarge, "the answer has more than %d bytes; ask about fewer entities, features or members at once", q.most)
}

// next is the next answer, of plan i.
func (q *question) next(i int) (features.Answer, error) {
	if q.oldest[i] == reached {
		return q.reading.Next()
	}
	a := features.Answer{Status: features.OutsideMaxAge, Oldest: &q.oldest[i]}
	a.From, a.To = q.plans[i].Covers(q.at, q.now)
	return a, nil
}

// complete says since when the state of the answer of plan i is complete.
// While events pass it by, nothing of what the answer covers is sure.
func (q *question) complete(a *features.Answer, i int) {
	switch {
	case q.since[i] == kinds.Ever:
	case q.since[i] == kinds.NotYet:
		next := a.To + 1
		a.CompleteSince = &next
	default:
		a.CompleteSince = &q.since[i]
	}
}
