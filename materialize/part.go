package materialize

import "context"

// part replays a part of the entities, for one goroutine.
type part struct {
	index   int
	state   State
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

// replay makes the changes of a block, and answers its rows.
func (p *part) replay(ctx context.Context, b *block, all []*changes) error {
	for i := p.index; i < len(all[0].todo); i += len(all[0].parts) {
		if err := p.bucket(ctx, b, i, all); err != nil {
			return err
		}
	}
	return nil
}

// bucket replays a bucket, one group after another.
func (p *part) bucket(ctx context.Context, b *block, index int, all []*changes) error {
	p.steps, p.first = p.steps[:0], p.first[:0]
	clear(p.last)
	for _, c := range all {
		in := &c.todo[index]
		for i := range in.changes {
			p.add(step{&in.changes[i], c, in, -1})
		}
	}
	for _, at := range p.first {
		for ; at >= 0; at = p.steps[at].next {
			s := &p.steps[at]
			if err := p.step(ctx, b, s); err != nil {
				return s.of.at(b, int(s.moment), err)
			}
		}
	}
	return nil
}

// add adds a step at the end of its group.
func (p *part) add(s step) {
	at := int32(len(p.steps))
	p.steps = append(p.steps, s)
	if last, ok := p.last[s.group]; ok {
		p.steps[last].next = at
	} else {
		p.first = append(p.first, at)
	}
	p.last[s.group] = at
}

func (p *part) step(ctx context.Context, b *block, s *step) error {
	if s.before || s.after {
		p.row = rowCells{b.row(s.of.rowsBefore + s.row), &b.long[p.index], uint8(p.index)}
		if err := p.about(b, s); err != nil {
			return err
		}
	}
	if s.before {
		if err := p.answers.fill(ctx, p.state, &p.subject, int(s.keys), true, &p.row); err != nil {
			return err
		}
	}
	if s.from < s.to {
		p.state.Update(s.entity, s.in.mutations[s.from:s.to], b.keys[s.moment].Time)
	}
	if s.after {
		return p.answers.fill(ctx, p.state, &p.subject, int(s.keys), false, &p.row)
	}
	return nil
}

// about finds the entities that a row asks about.
func (p *part) about(b *block, s *step) error {
	p.subject.now, p.subject.time = b.keys[s.moment].Time, s.time
	if p.reader != nil {
		m, err := b.moment(p.reader, int(s.moment))
		if err != nil {
			return err
		}
		p.subject.event = m.row(s.of.Stream)
	}
	if s.keys != allKeys {
		p.subject.entities[s.keys], p.subject.lacks[s.keys] = s.entity, s.lacks
		return nil
	}
	for i, keys := range p.answers.keys {
		entity, has := p.subject.event.Entity(p.subject.entities[i][:0], keys)
		p.subject.entities[i], p.subject.lacks[i] = entity, !has
	}
	return nil
}
