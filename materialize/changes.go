package materialize

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// changes holds what consecutive moments of a block change and ask, for one goroutine.
type changes struct {
	*timeline
	keys   [][]string              // sets of keys of entities; see answers.keys
	asked  []bool                  // by keys: rows ask about their entity
	keysOf map[*state.Series]int32 // of the entities that have it
	reader *reader
	mapper *features.Mapper
	batch  state.Batch // the mutations of a moment
	some   []change    // of a moment
	todo   []bucket    // by part
	entity []byte

	rows         []int32 // moments
	rowsBefore   int32   // rows of the block before these
	failures     []failure
	events, late int
}

// bucket is what a moment after another changes of the entities of a part. It has all memory that the changes need, so
// that they are in a core's cache when the part is replayed.
type bucket struct {
	changes   []change
	mutations []state.Mutation // of the changes
	texts     []state.Text     // of the mutations
	bytes     []byte           // of the entities and the texts
}

// change is what a moment changes in one entity, and what it asks about it, or by allKeys about all entities of the
// row.
type change struct {
	entity   []byte
	group    uint64 // equal for an entity
	now      int64  // the moment, in milliseconds
	time     int64  // of the row, in milliseconds
	from, to int32  // mutations
	keys     int32
	moment   int32
	row      int32 // among those of the changes
	lacks    bool  // the row has no such entity
	// before and after say whether the row asks before the updates, and after them.
	before, after bool
}

// failure is a moment that cannot be used.
type failure struct {
	moment
	err error
}

// find finds the changes of the moments from first on, before end.
func (c *changes) find(b *block, first, end int) error {
	for i := range c.todo {
		some := &c.todo[i]
		*some = bucket{some.changes[:0], some.mutations[:0], some.texts[:0], some.bytes[:0]}
	}
	c.rows, c.failures, c.events, c.late = c.rows[:0], c.failures[:0], 0, 0
	for n := first; n < end; n++ {
		m, err := b.moment(c.reader, n)
		if err != nil {
			return err
		}
		c.batch.Reset()
		c.batch.Ranges = append(c.batch.Ranges, state.PartitionRange{})
		row, err := c.apply(&m, int64(n))
		if err != nil {
			c.failures = append(c.failures, failure{m, err})
			continue
		}
		if row != nil {
			c.rows = append(c.rows, int32(n))
		}
		c.collect(row)
		for i := range c.some {
			s := &c.some[i]
			s.moment, s.now = int32(n), b.keys[n].Time
			c.todo[s.group%uint64(len(c.todo))].add(s, c.batch.Mutations)
		}
	}
	return nil
}

// add adds a copy of a change, with its mutations among those of its moment.
func (b *bucket) add(c *change, all []state.Mutation) {
	some, from := all[c.from:c.to], int32(len(b.mutations))
	for _, m := range some {
		if m.Text != nil {
			b.texts = append(b.texts, state.Text{Member: b.hold(m.Member), Key: b.hold(m.Key)})
			m.Text = &b.texts[len(b.texts)-1]
		}
		b.mutations = append(b.mutations, m)
	}
	c.entity, c.from, c.to = b.hold(c.entity), from, int32(len(b.mutations))
	b.changes = append(b.changes, *c)
}

// hold copies a text; nil stays nil. As with all memory of a bucket, what points into memory that it outgrows stays valid.
func (b *bucket) hold(p []byte) []byte {
	if p == nil {
		return nil
	}
	n := len(b.bytes)
	b.bytes = append(b.bytes, p...)
	return b.bytes[n:len(b.bytes):len(b.bytes)]
}

// apply maps the events of a moment, and returns the row; nil if it is not a row.
func (c *changes) apply(m *moment, n int64) (*record.Event, error) {
	if m.input < 0 {
		return m.row(nil), nil
	}
	outcome, err := c.mapper.MapEvents(m.events, n, m.recordTime, 0, &c.batch)
	if err != nil {
		return nil, err
	}
	c.events++
	if outcome.Late {
		c.late++
	}
	row := m.row(c.Stream)
	if row != nil && row.ID == nil {
		return nil, fmt.Errorf("stream %s: %s: the event has no id", c.Stream.Name, idColumn(c.Stream).Name)
	}
	return row, nil
}

// collect collects what a moment changes and asks.
func (c *changes) collect(row *record.Event) {
	c.some = c.some[:0]
	for i := range c.batch.Updates {
		u := &c.batch.Updates[i]
		s := change{entity: u.Entity, from: int32(u.From), to: int32(u.To), keys: allKeys}
		if !c.inOrder {
			s.keys = c.keysOf[c.batch.Mutations[u.From].Series]
			s.group = u.Hash + uint64(s.keys)
		}
		c.some = append(c.some, s)
	}
	if row == nil {
		return
	}
	if c.inOrder {
		c.askAll(row)
		return
	}
	for keys, asked := range c.asked {
		if asked {
			c.ask(row, int32(keys))
		}
	}
}

// askAll adds what a row asks about all its entities.
func (c *changes) askAll(row *record.Event) {
	if len(c.some) == 0 {
		c.some = append(c.some, change{keys: allKeys})
	}
	c.between(row, 0, len(c.some)-1)
}

// between makes a row ask before one change of the moment and after another, as far as some feature is asked then.
func (c *changes) between(row *record.Event, first, last int) {
	for _, i := range [...]int{first, last} {
		c.some[i].row, c.some[i].time = int32(len(c.rows)-1), row.Time
	}
	answers := &c.workers[0].answers
	c.some[first].before, c.some[last].after = answers.before, answers.after
}

// ask adds what a row asks about its entity by some keys.
func (c *changes) ask(row *record.Event, keys int32) {
	var has bool
	c.entity, has = row.Entity(c.entity[:0], c.keys[keys])
	first, last := -1, -1
	for i := range c.some {
		if s := &c.some[i]; has && s.keys == keys && bytes.Equal(s.entity, c.entity) {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		first, last = len(c.some), len(c.some)
		s := change{lacks: !has, keys: keys}
		if has {
			s.entity, s.group = c.batch.Hold(c.entity), state.EntityHash(c.entity)+uint64(keys)
		}
		c.some = append(c.some, s)
	}
	c.between(row, first, last)
}

func (t *timeline) newChanges() *changes {
	answers := &t.workers[0].answers
	c := &changes{
		timeline: t, keys: answers.keys, keysOf: map[*state.Series]int32{}, reader: t.newReader(), mapper: t.Registry.NewJSONMapper(),
		todo: make([]bucket, len(t.parts)),
	}
	for _, about := range answers.about {
		c.asked = append(c.asked, len(about) > 0)
	}
	for _, s := range t.Registry.Series {
		at := slices.IndexFunc(c.keys, func(k []string) bool { return slices.Equal(k, s.By) })
		if at < 0 {
			at = len(c.keys)
			c.keys, c.asked = append(slices.Clip(c.keys), s.By), append(c.asked, false)
		}
		c.keysOf[s] = int32(at)
	}
	return c
}
