package serve

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weir-stream/weir/features/kinds"
)

// answer answers the question in q.body and leaves the response in q.out.
func (h *handler) answer(ctx context.Context, q *question) error {
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
	if err := q.checkMoment(ctx, h.Reader); err != nil {
		return err
	}
	q.plan()
	slices, err := h.Reader.Read(ctx, q.reads)
	if err != nil {
		return &storeError{err}
	}
	if len(slices) != len(q.reads) {
		return fmt.Errorf("the store answered %d of %d reads", len(slices), len(q.reads))
	}
	return q.encode(slices)
}

// plan lists what must be read, equal reads once.
func (q *question) plan() {
	texts := string(q.texts.bytes)
	for e := range q.entities {
		for i, p := range q.plans {
			from, to := q.texts.bounds(e*len(q.sets) + q.set[i])
			known := len(q.reads)
			wanted := p.Reads(q.reads, texts[from:to], q.at)
			q.reads = wanted[:known]
			for _, read := range wanted[known:] {
				position, ok := q.positions[read]
				if !ok {
					position = len(q.reads)
					q.positions[read] = position
					q.reads = append(q.reads, read)
				}
				q.needs = append(q.needs, position)
			}
		}
	}
}

// encode folds what was read and writes the response. The error is that the
// store holds what cannot be read.
func (q *question) encode(slices []kinds.Slice) error {
	needs := q.needs
	out := append(q.out, `{"at":`...)
	out = strconv.AppendInt(out, q.at, 10)
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
			q.gathered = q.gathered[:0]
			for _, position := range needs[:len(p.Series)] {
				q.gathered = append(q.gathered, slices[position])
			}
			needs = needs[len(p.Series):]
			a, err := p.Answer(q.gathered, q.at, q.now)
			if err != nil {
				return err
			}
			out = append(out, p.label...)
			out = appendAnswer(out, &a)
		}
		out = append(out, "}}"...)
	}
	q.out = append(out, "]}\n"...)
	return nil
}
