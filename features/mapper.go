package features

import (
	"fmt"
	"math"

	"github.com/weir-stream/weir/features/kinds"
)

// Mapper turns records into what they do to state. What it does depends on the
// record and the registry only, never on the clock or on what came before, so
// a replay does the same. It is not safe for concurrent use: each goroutine
// needs its own.
//
// A record goes to every stream of its topic whose match takes it, and counts
// in each. It is poison as a whole if it is so for one of them.
type Mapper struct {
	// MaxRecordBytes is the greatest length of a record's value; longer ones are
	// poison. 0 is no limit.
	MaxRecordBytes int

	decoder *Decoder
	plans   map[*Stream]*writePlan
	streams []string
	entity  []byte
	text    []byte
	record  []byte
}

// Outcome is what became of a record that is no poison.
type Outcome struct {
	Stream  string   // the first that took it, by name; empty for none
	Streams []string // all that took it; holds until the next Map
	Events  []Event  // as each of them sees it; they hold until the next Map
	// Late says that the event came too late for some of its series: it was not
	// applied to those.
	Late bool
	// LateToDeadLetter says that it was late for a stream which wants such
	// events in the dead-letter topic.
	LateToDeadLetter bool
}

// writePlan is what an event of one stream does.
type writePlan struct {
	stream   *Stream
	wheres   []*Expr // the different ones
	passed   []bool  // by where
	tiles    []int64 // the different widths
	tile     []int64 // the event's tile, by width
	entities []entityPlan
	members  [][]byte // text of fields, by field, held in the batch; nil if not yet
}

type entityPlan struct {
	by     []int
	series []seriesPlan
	log    *logPlan
}

type logPlan struct {
	*logWrite
	wheres []int // by column, index in the plan; -1 for a field
}

type seriesPlan struct {
	*kinds.Series
	where, tile int // indexes in the plan; where is -1 for none
	field       int
}

// NewMapper makes a mapper of the registry.
func (r *Registry) NewMapper() *Mapper {
	m := &Mapper{decoder: r.NewDecoder(), plans: map[*Stream]*writePlan{}}
	for _, s := range r.Streams {
		m.plans[s] = newWritePlan(s)
	}
	return m
}

func newWritePlan(s *Stream) *writePlan {
	p := &writePlan{stream: s, members: make([][]byte, len(s.Fields))}
	whereOf, tileOf := map[string]int{}, map[int64]int{}
	whereIndex := func(where *Expr) int {
		i, ok := whereOf[where.Source]
		if !ok {
			i = len(p.wheres)
			whereOf[where.Source] = i
			p.wheres = append(p.wheres, where.Clone())
		}
		return i
	}
	for _, w := range s.writes {
		e := entityPlan{by: w.by}
		if w.log != nil {
			e.log = &logPlan{logWrite: w.log}
			for _, c := range w.log.columns {
				where := -1
				if c.where != nil {
					where = whereIndex(c.where)
				}
				e.log.wheres = append(e.log.wheres, where)
			}
		}
		for _, sw := range w.series {
			sp := seriesPlan{Series: sw.series, where: -1, field: sw.field}
			if sw.where != nil {
				sp.where = whereIndex(sw.where)
			}
			i, ok := tileOf[sw.series.Tile]
			if !ok {
				i = len(p.tiles)
				tileOf[sw.series.Tile] = i
				p.tiles = append(p.tiles, sw.series.Tile)
			}
			sp.tile = i
			e.series = append(e.series, sp)
		}
		p.entities = append(p.entities, e)
	}
	p.passed, p.tile = make([]bool, len(p.wheres)), make([]int64, len(p.tiles))
	return p
}

// Map adds to the batch what a record does; source is the index of its
// partition in b.Sources. Its error is a *Poison: nothing was added then.
func (m *Mapper) Map(rec *Record, source int, b *kinds.Batch) (Outcome, error) {
	if m.MaxRecordBytes > 0 && len(rec.Value) > m.MaxRecordBytes {
		return Outcome{}, &Poison{
			Reason:  Oversized,
			Message: fmt.Sprintf("the record has %d bytes; the limit is %d", len(rec.Value), m.MaxRecordBytes),
		}
	}
	events, err := m.decoder.Decode(rec)
	if err != nil {
		return Outcome{}, err
	}
	for i := range events {
		if err := m.plans[events[i].Stream].filter(&events[i]); err != nil {
			return Outcome{}, err
		}
	}
	var out Outcome
	m.streams = m.streams[:0]
	for i := range events {
		e := &events[i]
		m.streams = append(m.streams, e.Stream.Name)
		if m.write(e, m.plans[e.Stream], rec.Offset, source, b) {
			out.Late = true
			out.LateToDeadLetter = out.LateToDeadLetter || e.Stream.LateToDeadLetter
		}
	}
	if len(m.streams) > 0 {
		out.Stream, out.Streams, out.Events = m.streams[0], m.streams, events
		b.Now = max(b.Now, rec.Timestamp)
	}
	return out, nil
}

// filter evaluates each different filter once.
func (p *writePlan) filter(e *Event) error {
	for i, w := range p.wheres {
		passed, err := w.True(e.Values)
		if err != nil {
			return &Poison{Reason: BadExpression, Stream: p.stream.Name, Message: fmt.Sprintf("where %s: %v", w.Source, err)}
		}
		p.passed[i] = passed
	}
	return nil
}

// write adds the event's operations and says whether it was late for any.
func (m *Mapper) write(e *Event, p *writePlan, offset int64, source int, b *kinds.Batch) (late bool) {
	for i, width := range p.tiles {
		p.tile[i] = 0
		if width > 0 {
			p.tile[i] = kinds.FloorDiv(e.Time, width)
		}
	}
	clear(p.members)
	for i := range p.entities {
		entity := &p.entities[i]
		if !m.nameEntity(e.Values, entity.by) {
			continue
		}
		begun := false
		for j := range entity.series {
			s := &entity.series[j]
			if s.where >= 0 && !p.passed[s.where] {
				continue
			}
			op := kinds.Op{Series: s.Series, Tile: p.tile[s.tile]}
			if !m.measure(&op, e, p, s.field, b) {
				continue
			}
			// What is younger than Keep is never late: the cheap check first.
			if e.Time < e.Now-s.Keep && s.Late(e.Time, e.Now) {
				late = true
				continue
			}
			if !begun {
				b.Touch(source, offset, m.entity)
				begun = true
			}
			b.Add(op)
		}
		if entity.log == nil || !m.recordOf(entity.log, e, p) {
			continue
		}
		if entity.log.series.Late(e.Time, e.Now) {
			late = true
			continue
		}
		if !begun {
			b.Touch(source, offset, m.entity)
		}
		m.text = kinds.AppendLogRecord(m.text[:0], m.record)
		b.Add(kinds.Op{Series: entity.log.series, Tile: e.Time, Member: b.Hold(m.text)})
	}
	return late
}

// recordOf builds the event's record for a log, and says whether any feature
// takes the event.
func (m *Mapper) recordOf(log *logPlan, e *Event, p *writePlan) bool {
	m.record = kinds.AppendLogTime(m.record[:0], e.Time)
	taken := log.every
	for i, c := range log.columns {
		switch where := log.wheres[i]; {
		case where < 0:
			m.record = kinds.AppendLogColumn(m.record, c.Column, e.Values[c.field])
		case p.passed[where]:
			m.record = kinds.AppendLogColumn(m.record, c.Column, kinds.Value{})
			taken = taken || c.filters
		}
	}
	return taken
}

// nameEntity builds the text of the entity that an event belongs to. An event
// without one of the fields belongs to none.
func (m *Mapper) nameEntity(values []kinds.Value, by []int) bool {
	m.entity = m.entity[:0]
	for i, field := range by {
		v := &values[field]
		if v.IsNull() {
			return false
		}
		m.entity = kinds.AppendEntity(m.entity, i == 0, *v)
	}
	return true
}

// measure fills in the operation's amount or member, and says whether there is
// one: nulls are passed over.
func (m *Mapper) measure(op *kinds.Op, e *Event, p *writePlan, field int, b *kinds.Batch) bool {
	measure := op.Series.Measure
	if measure == kinds.CountEvents {
		op.Num = 1
		return true
	}
	v := &e.Values[field]
	if v.IsNull() {
		return false
	}
	switch measure {
	case kinds.CountValues:
		op.Num = 1
	case kinds.Sum, kinds.Min, kinds.Max:
		op.Num = v.Num
		if v.Type == kinds.Float {
			op.Num = int64(math.Float64bits(v.Flt))
		}
	default: // Distinct, Approx, Touch
		if p.members[field] == nil {
			m.text = v.AppendText(m.text[:0])
			p.members[field] = b.Hold(m.text)
		}
		op.Member = p.members[field]
		if measure == kinds.Touch {
			op.Num = e.Time
		}
	}
	return true
}
