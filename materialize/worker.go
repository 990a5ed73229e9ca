package materialize

import (
	"context"
	"math/bits"
	"slices"

	"github.com/weir-stream/weir/state"
)

// worker replays parts of the entities, for one goroutine.
type worker struct {
	index   int
	answers answers
	reader  *reader // of the events of rows; nil if only their entities are needed
	subject subject
	row     rowCells

	mutations []state.Mutation // of a change
	texts     []state.Text     // of its mutations

	steps []step
	first []int32 // step of each group
	// last is a hash table of groups: the number of steps up to the last one of the group, 0 for none. A map would take 1%
	// of a replay.
	last []int32
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
	w.makeTable(part, all)
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

// makeTable makes the hash table of groups, of which at most half is used.
func (w *worker) makeTable(part int, all []*changes) {
	steps := 0
	for _, c := range all {
		steps += len(c.todo[part].changes)
	}
	size := 1 << bits.Len(uint(2*steps))
	w.last = slices.Grow(w.last[:0], size)[:size]
	clear(w.last)
}

// add adds a step at the end of its group.
func (w *worker) add(s step) {
	at := s.group >> 32 // the lower bits are alike in a part
	for mask := uint64(len(w.last) - 1); ; at++ {
		at &= mask
		if n := w.last[at]; n == 0 {
			w.first = append(w.first, int32(len(w.steps)))
			break
		} else if last := &w.steps[n-1]; last.group == s.group {
			last.next = int32(len(w.steps))
			break
		}
	}
	w.steps = append(w.steps, s)
	w.last[at] = int32(len(w.steps))
}

func (w *worker) step(ctx context.Context, b *block, s *step, to State) error {
	entity, mutations := w.change(s)
	if s.before || s.after {
		w.row = rowCells{b.row(s.of.rowsBefore + s.row), w.answers.types, &b.long[w.index], w.index}
		if err := w.about(b, s, entity); err != nil {
			return err
		}
	}
	if s.before {
		if err := w.answers.fill(ctx, to, &w.subject, int(s.keys), true, &w.row); err != nil {
			return err
		}
	}
	to.Update(entity, mutations, s.now)
	if s.after {
		return w.answers.fill(ctx, to, &w.subject, int(s.keys), false, &w.row)
	}
	return nil
}

// about finds the entities that a row asks about.
func (w *worker) about(b *block, s *step, entity []byte) error {
	w.subject.now, w.subject.time = s.now, s.time
	if w.reader != nil {
		m, err := b.moment(w.reader, int(s.moment))
		if err != nil {
			return err
		}
		w.subject.event, w.subject.spine = m.row(s.of.Stream), s.of.Spine
	}
	if s.keys != allKeys {
		w.subject.entities[s.keys], w.subject.lacks[s.keys] = entity, s.lacks
		return nil
	}
	for i, keys := range w.answers.keys {
		entity, has := w.subject.event.Entity(w.subject.entities[i][:0], keys)
		w.subject.entities[i], w.subject.lacks[i] = entity, !has
	}
	return nil
}
