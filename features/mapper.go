package features

import (
	"fmt"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Mapper turns records into mutations of state. The result depends on the record, the registry and the record's Earlier
// only, so on the log, never on the clock: a replay has the same result. It is not safe for concurrent use: each
// goroutine needs its own.
//
// A record counts in every stream of its topic whose match accepts it, unless it repeats an event there. If it is poison
// for one of them, it is poison as a whole.
type Mapper struct {
	*record.Decoder
	// Namespace is that of the state, in which copies of dead letters count only where they are lacking. If it is empty,
	// copies count like any other record.
	Namespace string
	// Seal proves which records are copies of dead letters.
	Seal state.Seal
	// Forged counts the records that claim to be copies and are none.
	Forged int

	series   []*state.Series
	mappings map[*record.Stream]*streamMapping
	mapped   []*streamMapping // of the record's events
	streams  []string
	repeats  []string
	entity   []byte
	text     []byte
	record   []byte
	copy     *record.Copy // of the record; nil if it counts in all series
}

// Outcome describes a record that is not poison.
type Outcome struct {
	Stream  string         // the first that took it, by name; empty for none
	Streams []string       // all that took it; valid until the next Map
	Events  []record.Event // as each of them sees it, in their order, several of a stream with Each; valid until the next Map
	// Repeats are the streams that would take it, but had its event in an earlier record; valid until the next Map.
	Repeats []string
	// Late is true if the event was too late for some of its series, and was not applied to those.
	Late bool
	// LateToDeadLetter is true if it was late for a stream that sends late events to the dead-letter topic.
	LateToDeadLetter bool
}

// streamMapping is what an event of one stream writes.
type streamMapping struct {
	stream   *record.Stream
	wheres   []*expr.Expr // distinct
	passed   []bool       // by where
	tiles    []int64      // distinct widths
	tile     []int64      // the event's tile, by width
	entities []entityMapping
	members  [][]byte // text of fields, by field, held in the batch; nil if not yet
}

type entityMapping struct {
	by     []int
	series []seriesMapping
	logs   []logMapping
	ids    []*state.Series
}

type logMapping struct {
	*logWrite
	wheres []int // by column, index in the mapping; -1 for a field
	cut    *state.Boundary
	silent bool // it is not written, see reduce
}

type seriesMapping struct {
	*state.Series
	where, condition, tile int // indexes in the mapping; -1 for none
	field, per             int
	text                   bool // its mutations have a member or a key
	cut                    *state.Boundary
	key                    func(dst []byte, v value.Value) []byte
	silent                 bool // it is not written, see reduce
}

// NewDecoder makes a decoder of the registry's streams.
func (r *Registry) NewDecoder() *record.Decoder { return record.NewDecoder(r.Streams) }

// NewMapper makes a mapper of the records of the registry's topics.
func (r *Registry) NewMapper() *Mapper { return r.newMapper(r.Streams, r.NewDecoder()) }

// NewJSONMapper makes a mapper of events given as JSON objects, independent of the format of their topics. They are of
// all streams, or only of the given ones.
func (r *Registry) NewJSONMapper(only ...*record.Stream) *Mapper {
	if only == nil {
		only = r.Streams
	}
	return r.newMapper(only, record.NewJSONDecoder(only))
}

// NewTextMapper makes a mapper of the records of the registry's topics that are given as texts, see
// record.NewTextDecoder.
func (r *Registry) NewTextMapper() *Mapper {
	return r.newMapper(r.Streams, record.NewTextDecoder(r.Streams))
}

func (r *Registry) newMapper(streams []*record.Stream, decoder *record.Decoder) *Mapper {
	m := &Mapper{Decoder: decoder, series: r.Series, mappings: map[*record.Stream]*streamMapping{}}
	for _, s := range streams {
		m.mappings[s] = newStreamMapping(s, r.writes[s])
	}
	return m
}

func newStreamMapping(s *record.Stream, writes []entityWrites) *streamMapping {
	p := &streamMapping{stream: s, members: make([][]byte, len(s.Fields))}
	whereOf, tileOf, cuts := map[string]int{}, map[int64]int{}, boundaries{}
	whereIndex := func(where *expr.Expr) int {
		if where == nil {
			return -1
		}
		i, ok := whereOf[where.Text]
		if !ok {
			i = len(p.wheres)
			whereOf[where.Text] = i
			p.wheres = append(p.wheres, where.Clone())
		}
		return i
	}
	for _, w := range writes {
		e := entityMapping{by: w.by, ids: w.ids}
		for _, l := range w.logs {
			log := logMapping{logWrite: l, cut: cuts.of(l.series.Cut)}
			for _, c := range l.columns {
				log.wheres = append(log.wheres, whereIndex(c.where))
			}
			e.logs = append(e.logs, log)
		}
		for _, sw := range w.series {
			sp := seriesMapping{
				Series: sw.series, where: whereIndex(sw.where), condition: whereIndex(sw.condition),
				field: sw.field, per: sw.per, key: sw.key, cut: cuts.of(sw.series.Cut),
				text: sw.per >= 0 || sw.series.Measure.Member() != state.NoMember,
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

// Map adds the mutations of a record to the batch; rangeIndex is the index of its partition in b.Ranges. The error is a
// *Poison or a *record.MissingSchema; in both cases nothing was added.
func (m *Mapper) Map(rec *record.Record, rangeIndex int, b *state.Batch) (Outcome, error) {
	events, err := m.usable(rec)
	if err != nil {
		return Outcome{}, err
	}
	at := state.RecordOffset{Partition: rec.Partition.ID, Offset: rec.Offset, Log: rec.Log}
	return m.mapEvents(events, rec.Earlier, at, rec.Timestamp, rangeIndex, b), nil
}

// Note lets the record's Earlier know a record that is not mapped, as when others have done it. The error is that of Map.
func (m *Mapper) Note(rec *record.Record) error {
	events, err := m.usable(rec)
	for i := range events {
		rec.Earlier.Repeats(&events[i], m.copy != nil)
	}
	return err
}

// usable decodes a record. The error is that of Map.
func (m *Mapper) usable(rec *record.Record) (events []record.Event, err error) {
	defer record.Recover(&err)
	rec.Earlier.Pass(rec.Offset, rec.Timestamp)
	if foreign, err := m.readCopy(rec); foreign || err != nil {
		return nil, err
	}
	if events, err = m.Decode(rec); err != nil {
		return nil, err
	}
	return events, m.Check(events)
}

// MapEvents is Map for a record that a Decoder of the same streams has already decoded, and that belongs to no
// partition. A batch that moves no progress needs no ranges.
func (m *Mapper) MapEvents(events []record.Event, offset, timestamp int64, rangeIndex int, b *state.Batch) (Outcome, error) {
	m.copy = nil
	if err := m.Check(events); err != nil {
		return Outcome{}, err
	}
	return m.mapEvents(events, nil, state.RecordOffset{Offset: offset}, timestamp, rangeIndex, b), nil
}

// Check returns the *record.Poison of a record that was decoded to some events and is poison for one of their streams;
// nil if it can be used.
func (m *Mapper) Check(events []record.Event) error {
	m.mapped = m.mapped[:0]
	for i := range events {
		p := m.mappings[events[i].Stream]
		if err := p.filter(&events[i]); err != nil {
			return err
		}
		m.mapped = append(m.mapped, p)
	}
	return nil
}

// mapEvents maps events that were checked.
func (m *Mapper) mapEvents(events []record.Event, earlier *record.Earlier, at state.RecordOffset, timestamp int64, rangeIndex int, b *state.Batch) (out Outcome) {
	m.streams, m.repeats = m.streams[:0], m.repeats[:0]
	kept := 0
	for i := range events {
		e := &events[i]
		if earlier.Repeats(e, m.copy != nil) {
			m.repeats = append(m.repeats, e.Stream.Name)
			continue
		}
		again := i > 0 && m.mapped[i-1] == m.mapped[i]
		if !again {
			m.streams = append(m.streams, e.Stream.Name)
		}
		if again || i+1 < len(events) && m.mapped[i+1] == m.mapped[i] { // what passed was noted of the stream's last event
			_ = m.mapped[i].filter(e) // Check has done so without an error
		}
		events[kept] = *e
		kept++
		if m.write(e, m.mapped[i], &at, rangeIndex, b) {
			out.Late = true
			out.LateToDeadLetter = out.LateToDeadLetter || e.Stream.LateToDeadLetter
		}
	}
	out.Repeats = m.repeats
	if len(m.streams) > 0 {
		out.Stream, out.Streams, out.Events = m.streams[0], m.streams, events[:kept]
		b.Now, b.Series = max(b.Now, timestamp), m.series
	}
	return out
}

// filter evaluates each distinct filter once.
func (p *streamMapping) filter(e *record.Event) error {
	for i, w := range p.wheres {
		passed, err := w.True(e.Values)
		if err != nil {
			return &record.Poison{Reason: record.BadExpression, Stream: p.stream.Name, Message: fmt.Sprintf("where %s: %v", w.Text, err)}
		}
		p.passed[i] = passed
	}
	return nil
}

// write adds the event's mutations, and reports whether it was late for any series.
func (m *Mapper) write(e *record.Event, p *streamMapping, at *state.RecordOffset, rangeIndex int, b *state.Batch) (late bool) {
	for i, width := range p.tiles {
		p.tile[i] = 0
		if width > 0 {
			p.tile[i] = state.FloorDiv(e.Time, width)
		}
	}
	clear(p.members)
	var id []byte // identifies the event in dedup sets
	for i := range p.entities {
		entity := &p.entities[i]
		if !m.nameEntity(e.Values, entity.by) {
			continue
		}
		begun, counts := false, false
		begin := func() {
			if !begun {
				b.Update(rangeIndex, at.Offset, m.entity)
				begun = true
			}
		}
		for j := range entity.series {
			s := &entity.series[j]
			if !m.counts(s.ID) {
				continue
			}
			if s.where >= 0 && !p.passed[s.where] || s.condition >= 0 && !p.passed[s.condition] || !s.cut.Logged(e.Time, at) {
				continue
			}
			mutation := state.Mutation{Series: s.Series, Tile: p.tile[s.tile]}
			if s.text {
				mutation.Text = b.HoldText()
			}
			if !m.measure(&mutation, e, p, s.field, b) || !m.key(&mutation, e, p, s, b) {
				continue
			}
			// An event within Keep is never late: this cheap check comes first.
			if e.Time < e.Now-s.Keep && s.Late(e.Time, e.Now) {
				late = true
				continue
			}
			counts = true
			if s.silent {
				continue
			}
			begin()
			b.Add(mutation)
		}
		for j := range entity.logs {
			log := &entity.logs[j]
			switch {
			case !m.counts(log.series.ID) || !log.cut.Logged(e.Time, at) || !m.recordOf(log, e, p):
			case log.series.Late(e.Time, e.Now):
				late = true
			default:
				if counts = true; log.silent {
					continue
				}
				begin()
				m.text = state.AppendLogRecord(m.text[:0], m.record)
				m.addText(state.Mutation{Series: log.series, Tile: e.Time}, b.Hold(m.text), b)
			}
		}
		if !counts || e.ID == nil {
			continue
		}
		for _, ids := range entity.ids {
			begin()
			if id == nil {
				m.text = value.Shorten(m.text[:0], e.ID, value.MaxText)
				id = b.Hold(m.text)
			}
			m.addText(state.Mutation{Series: ids, Tile: ids.TileOf(e.Now)}, id, b)
		}
	}
	return late
}

// addText adds a mutation with a member that the batch holds.
func (m *Mapper) addText(mutation state.Mutation, member []byte, b *state.Batch) {
	mutation.Text = b.HoldText()
	mutation.Member = member
	b.Add(mutation)
}

// boundaries maps the cuts of series to their boundaries.
type boundaries map[state.Cut]*state.Boundary

// of returns the boundary of a cut; nil if cut is nil.
func (b boundaries) of(cut *state.Cut) *state.Boundary {
	if cut == nil {
		return nil
	}
	if b[*cut] == nil {
		b[*cut] = cut.Boundary()
	}
	return b[*cut]
}

// recordOf builds the event's record for a log, and reports whether any feature uses the event.
func (m *Mapper) recordOf(log *logMapping, e *record.Event, p *streamMapping) bool {
	m.record = state.AppendLogTime(m.record[:0], e.Time)
	taken := log.every
	for i, c := range log.columns {
		switch where := log.wheres[i]; {
		case where < 0:
			m.record = state.AppendLogColumn(m.record, c.Column, p.stream.Kept(c.field, e.Values[c.field]))
		case p.passed[where]:
			m.record = state.AppendLogColumn(m.record, c.Column, value.Value{})
			taken = taken || c.filters
		}
	}
	return taken
}

// nameEntity builds the text of the event's entity; false if the event lacks one of the fields.
func (m *Mapper) nameEntity(values []value.Value, by []int) bool {
	m.entity = m.entity[:0]
	for i, field := range by {
		v := &values[field]
		if v.IsNull() {
			return false
		}
		m.entity = state.AppendEntity(m.entity, i == 0, *v)
	}
	return true
}

// measure sets the mutation's amount or member, and reports whether there is one: nulls are skipped.
func (m *Mapper) measure(mutation *state.Mutation, e *record.Event, p *streamMapping, field int, b *state.Batch) bool {
	measure, in := mutation.Series.Measure, state.Input{Time: e.Time, Begin: mutation.Tile * mutation.Series.Tile}
	if !measure.OfEvents() {
		v := &e.Values[field]
		if v.IsNull() {
			return false
		}
		in.Value = v
		switch measure.Member() {
		case state.TextMember:
			mutation.Member = m.member(v, p, field, b)
		case state.ValueMember:
			m.text = state.AppendValue(m.text[:0], p.stream.Kept(field, *v))
			mutation.Member = b.Hold(m.text)
		}
	}
	mutation.Num = measure.Num(in)
	return true
}

// key sets the mutation's key if its series has keys, and reports whether there is one: nulls are skipped.
func (m *Mapper) key(mutation *state.Mutation, e *record.Event, p *streamMapping, s *seriesMapping, b *state.Batch) bool {
	if s.per < 0 {
		return true
	}
	v := &e.Values[s.per]
	switch {
	case v.IsNull():
		return false
	case s.key == nil:
		mutation.Key = m.member(v, p, s.per, b)
	default:
		m.text = s.key(m.text[:0], *v)
		mutation.Key = b.Hold(m.text)
	}
	return true
}

// member returns the text of a field's value, copied into the batch once.
func (m *Mapper) member(v *value.Value, p *streamMapping, field int, b *state.Batch) []byte {
	if p.members[field] == nil {
		m.text = p.stream.AppendKept(m.text[:0], field, v)
		p.members[field] = b.Hold(m.text)
	}
	return p.members[field]
}
