package materialize

import "context"

// worker replays parts of the entities, for one goroutine.
type worker struct {
	index   int
	answers answers
	reader  *reader // of the events of rows; nil if only their entities are needed
	subject subject
	row     rowCells

	steps []step
	first []int32          // step of each group
	last  map[uint64]int32 // step of a group
}

// step is one change, and the next one of its group, -1 for none.
type step struct {
	*change
	of   *changes
	in   *bucket
	next int32
}

// replay makes the changes of a block to a part, and answers its rows, one group after another.
func (w *worker) replay(ctx context.Context, b *block, part int, to State, all []*changes) error {
	w.steps, w.first = w.steps[:0], w.first[:0]
	clear(w.last)
	for _, c := range all {
		in := &c.todo[part]
		for i := range in.changes {
			w.add(step{&in.changes[i], c, in, -1})
		}
	}
	for _, at := range w.first {
		for ; at >= 0; at = w.steps[at].next {
			s := &w.steps[at]
			if err := w.step(ctx, b, s, to); err != nil {
				return s.of.at(b, int(s.moment), err)
			}
		}
	}
	to.Sweep(b.keys[len(b.keys)-1].Time)
	return nil
}

// add adds a step at the end of its group.
func (w *worker) add(s step) {
	at := int32(len(w.steps))
	w.steps = append(w.steps, s)
	if last, ok := w.last[s.group]; ok {
		w.steps[last].next = at
	} else {
		w.first = append(w.first, at)
	}
	w.last[s.group] = at
}

func (w *worker) step(ctx context.Context, b *block, s *step, to State) error {
	if s.before || s.after {
		w.row = rowCells{b.row(s.of.rowsBefore + s.row), w.answers.types, &b.long[w.index], w.index}
		if err := w.about(b, s); err != nil {
			return err
		}
	}
	if s.before {
		if err := w.answers.fill(ctx, to, &w.subject, int(s.keys), true, &w.row); err != nil {
			return err
		}
	}
	if s.from < s.to {
		to.Update(s.entity, s.in.mutations[s.from:s.to], s.now)
	}
	if s.after {
		return w.answers.fill(ctx, to, &w.subject, int(s.keys), false, &w.row)
	}
	return nil
}

// about finds the entities that a row asks about.
func (w *worker) about(b *block, s *step) error {
	w.subject.now, w.subject.time = s.now, s.time
	if w.reader != nil {
		m, err := b.moment(w.reader, int(s.moment))
		if err != nil {
			return err
		}
		w.subject.event = m.row(s.of.Stream)
	}
	if s.keys != allKeys {
		w.subject.entities[s.keys], w.subject.lacks[s.keys] = s.entity, s.lacks
		return nil
	}
	for i, keys := range w.answers.keys {
		entity, has := w.subject.event.Entity(w.subject.entities[i][:0], keys)
		w.subject.entities[i], w.subject.lacks[i] = entity, !has
	}
	return nil
}
