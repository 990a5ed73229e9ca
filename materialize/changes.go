package materialize

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// changes holds what consecutive moments of a block change and ask, for one goroutine.
type changes struct {
	*timeline
	keys   [][]string // sets of keys of entities; see answers.keys
	asked  []bool     // by keys: rows ask about their entity
	series map[*state.Series]seriesOf
	reader *reader
	mapper *features.Mapper
	batch  state.Batch // the mutations of a moment
	some   []found     // of a moment
	todo   []bucket    // by part
	entity []byte

	rows               []int32 // moments
	rowsBefore         int32   // rows of the block before these
	failures           []failure
	events, late, noID int
}

// seriesOf is the index of a series in the registry, and of the keys of its entities.
type seriesOf struct{ index, keys int32 }

// bucket is what a moment after another changes of the entities of a part. It is small, so that it is in a core's cache
// when the part is replayed, and a block may have many moments.
type bucket struct {
	changes []change
	data    []byte // the entity of each change, and its mutations
}

// change is what a moment changes in one entity, and what it asks about it, or by allKeys about all entities of the
// row.
type change struct {
	group  uint64 // equal for an entity
	now    int64  // the moment, in milliseconds
	time   int64  // of the row, in milliseconds
	at     int    // in the data of the bucket
	keys   int32
	moment int32
	row    int32 // among those of the changes
	lacks  bool  // the row has no such entity
	// before and after say whether the row asks before the updates, and after them.
	before, after bool
}

// found is a change before it is in its bucket.
type found struct {
	change
	entity   []byte
	from, to int // mutations in the batch
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
		some.changes, some.data = some.changes[:0], some.data[:0]
	}
	c.rows, c.failures, c.events, c.late, c.noID = c.rows[:0], c.failures[:0], 0, 0, 0
	for n := first; n < end; n++ {
		m, err := b.moment(c.reader, n)
		if err != nil {
			return err
		}
		c.batch.Reset()
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
			c.put(s)
		}
	}
	return nil
}

// put puts a change into its bucket.
func (c *changes) put(f *found) {
	in := &c.todo[f.group%uint64(len(c.todo))]
	f.at = len(in.data)
	in.data = appendText(in.data, f.entity)
	in.data = binary.AppendUvarint(in.data, uint64(f.to-f.from))
	for i := f.from; i < f.to; i++ {
		m := &c.batch.Mutations[i]
		in.data = binary.AppendUvarint(in.data, uint64(c.series[m.Series].index))
		in.data = binary.AppendVarint(binary.AppendVarint(in.data, m.Tile), m.Num)
		in.data = appendMutationText(in.data, m.Text)
	}
	in.changes = append(in.changes, f.change)
}

// change reads what put has written of a change: its entity and its mutations.
func (w *worker) change(s *step) (entity []byte, mutations []state.Mutation) {
	i := item{rest: s.in.data[s.at:]}
	entity = i.text()
	n := int(i.uint())
	w.mutations, w.texts = slices.Grow(w.mutations[:0], n)[:n], slices.Grow(w.texts[:0], n)[:n]
	for j := range w.mutations {
		m, text := &w.mutations[j], &w.texts[j]
		*m = state.Mutation{Series: s.of.Registry.Series[i.uint()], Tile: i.int(), Num: i.int()}
		if i.mutationText(text) {
			m.Text = text
		}
	}
	return entity, w.mutations
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
	if !m.further {
		c.events++
	}
	if outcome.Late {
		c.late++
	}
	row := m.row(c.Stream)
	switch {
	case row == nil || row.ID != nil:
	case c.AsServed || c.Inputs[m.input].Log != nil: // the event counted in production
		c.noID++
		return nil, nil
	default:
		return nil, fmt.Errorf("stream %s: %s: the event has no id", c.Stream.Name, idColumn(c.Stream).Name)
	}
	return row, nil
}

// collect collects what a moment changes and asks.
func (c *changes) collect(row *record.Event) {
	c.some = c.some[:0]
	for i := range c.batch.Updates {
		u := &c.batch.Updates[i]
		s := found{change: change{keys: allKeys}, entity: u.Entity, from: u.From, to: u.To}
		if !c.inOrder {
			s.keys = c.series[c.batch.Mutations[u.From].Series].keys
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
		c.some = append(c.some, found{change: change{keys: allKeys}})
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
		s := found{change: change{lacks: !has, keys: keys}}
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
		timeline: t, keys: answers.keys, series: map[*state.Series]seriesOf{}, reader: t.newReader(), mapper: t.Registry.NewJSONMapper(),
		todo: make([]bucket, len(t.parts)),
	}
	for _, about := range answers.about {
		c.asked = append(c.asked, len(about) > 0)
	}
	for i, s := range t.Registry.Series {
		at := slices.IndexFunc(c.keys, func(k []string) bool { return slices.Equal(k, s.By) })
		if at < 0 {
			at = len(c.keys)
			c.keys, c.asked = append(slices.Clip(c.keys), s.By), append(c.asked, false)
		}
		c.series[s] = seriesOf{int32(i), int32(at)}
	}
	return c
}
