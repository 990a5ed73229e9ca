package serve

import (
	"errors"
	"slices"
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
)

var pendingKeys = []string{"stream", "event"}

// maxPending is how many pending events a question may have, and maxChanges how many changes of state these may make: a record with
// elements is many events, and each value that is asked for is compared with all of them.
const maxPending, maxChanges = 16, 1 << 14

// outcome is how a pending event was read.
type outcome struct {
	stream             string
	time               int64 // milliseconds
	deduplicated, late bool
	updates            int // how many of the batch's Updates there are after it
}

// pending holds the events of a question that are not yet on the bus.
type pending struct {
	sent *fastjson.Value
	// batch holds their mutations; nil if there are none. outcomes are how they were read.
	batch    *state.Batch
	outcomes []outcome
	events   []*record.Event // those that features asked for may be about; see inHand
}

// readPending maps the pending events as the processor will map their records, as if these were written now.
func (q *asked) readPending(v *fastjson.Value) error {
	list := []*fastjson.Value{v}
	switch v.Type() {
	case fastjson.TypeArray:
		list = v.GetArray()
	case fastjson.TypeObject:
	default:
		return reply.Wrong("pending", "an object with stream and event, or a list of them", v)
	}
	if len(list) > maxPending {
		return reply.Errorf(reply.TooManyValues, "%d pending events are more than the %d that one question may have", len(list), maxPending)
	}
	mapper := q.view.mappers.Get().(*features.Mapper)
	defer q.view.mappers.Put(mapper)
	q.pending = pending{sent: v, batch: new(state.Batch), outcomes: q.pending.outcomes[:0]}
	p := &q.pending
	for i, v := range list {
		event, moment, late, err := mapEvent(q.view, mapper, pendingEvent(i), v, q.now, p.batch)
		if err != nil {
			return err
		}
		if changes := len(p.batch.Mutations); changes > maxChanges {
			return pendingEvent(i).locate(reply.Errorf(reply.TooManyValues,
				"the pending events up to this one make %d changes of state, more than the %d that those of one question may; ask about fewer events, or elements of them, at a time",
				changes, maxChanges))
		}
		p.outcomes = append(p.outcomes, outcome{
			stream: event.Stream.Name, time: event.Time, deduplicated: event.Stream.RememberIDs > 0 && event.ID != nil, late: late, updates: len(p.batch.Updates),
		})
		if q.reads(event.Stream) {
			p.events = append(p.events, event.Clone())
		}
		q.happen(event.Stream, moment)
	}
	return nil
}

// happen makes the time of an event of a stream the moment of the question, unless that is given or another event is later.
func (q *asked) happen(s *record.Stream, at int64) {
	if !q.given && (!q.dated || at > q.at) {
		// The event is being decided about now, although its time is a little earlier.
		q.at, q.present, q.dated = at, q.now-s.MaxFuture.Milliseconds(), true
	}
}

// sentEvent is an event of a question in errors: one of those that are pending, or the one that is only looked at.
type sentEvent struct {
	name    string
	key     string // of the question
	pending int    // -1 for the one that is not
}

func pendingEvent(i int) sentEvent {
	return sentEvent{"pending event " + strconv.Itoa(i), "pending", i}
}

// locate says in an error which event it is about.
func (s sentEvent) locate(e *reply.Error) *reply.Error {
	if s.pending >= 0 {
		return e.InEvent(s.pending)
	}
	return e.At(s.key)
}

// mapEvent maps an event of a question into a batch, and returns it, valid until the mapper's next, its moment, and whether it was
// late for some features. Of a record that is several events it is the first, and the moment that of the latest: all count.
func mapEvent(from view, mapper *features.Mapper, s sentEvent, v *fastjson.Value, now int64, b *state.Batch) (event *record.Event, moment int64, late bool, err error) {
	stream, value, err := parseEvent(from, s, v)
	if err != nil {
		return nil, 0, false, err
	}
	rec := record.Record{Partition: state.Partition{Topic: stream.Topic}, Offset: record.Unwritten, Timestamp: now, Value: value}
	mapped, err := mapper.Map(&rec, 0, b)
	var poison *record.Poison
	switch {
	case errors.As(err, &poison):
		if !from.mayName(stream) { // nor its fields
			return nil, 0, false, s.locate(reply.Errorf(reply.BadEvent, "%s cannot be used in stream %q", s.name, stream.Name))
		}
		e := s.locate(reply.Errorf(reply.BadEvent, "%s cannot be used: %v", s.name, poison))
		e.Reason, e.Path = string(poison.Reason), poison.Path
		return nil, 0, false, e
	case err != nil:
		return nil, 0, false, err
	}
	n := slices.IndexFunc(mapped.Events, func(e record.Event) bool { return e.Stream.Name == stream.Name })
	if n < 0 {
		e := s.locate(reply.Errorf(reply.BadEvent, "%s does not belong to stream %q", s.name, stream.Name))
		if from.mayName(stream) && stream.Match != nil {
			e.Message += ", which takes events for which " + stream.Match.Text
		}
		return nil, 0, false, e
	}
	event = &mapped.Events[n]
	moment = event.Time
	for _, e := range mapped.Events[n:] {
		if e.Stream.Name == stream.Name {
			moment = max(moment, e.Time)
		}
	}
	return event, moment, mapped.Late, nil
}

// appendOutcomes appends the outcomes of the pending events, in JSON, once the state is read.
func (p *pending) appendOutcomes(dst []byte, reads []state.Read) []byte {
	counted := p.counted(reads)
	for i := range p.outcomes {
		o := &p.outcomes[i]
		dst = append(dst, "[,"[min(i, 1)])
		dst = append(dst, `{"stream":`...)
		dst = query.AppendString(dst, o.stream)
		dst = append(dst, `,"time":`...)
		dst = strconv.AppendInt(dst, o.time, 10)
		dst = append(dst, `,"deduplicated":`...)
		dst = strconv.AppendBool(dst, o.deduplicated)
		if at, known := p.met(i); known {
			dst = append(dst, `,"met":`...)
			dst = strconv.AppendInt(dst, at, 10)
		}
		if o.late {
			dst = append(dst, `,"late":true`...)
		}
		if !counted[i] {
			dst = append(dst, `,"uncounted":true`...)
		}
		dst = append(dst, '}')
	}
	if len(p.outcomes) == 0 {
		dst = append(dst, '[')
	}
	return append(dst, ']')
}

// met returns the earliest time at which an entity that was read met a pending event's ID; known is false if none knows
// it.
func (p *pending) met(i int) (at int64, known bool) {
	from, to := 0, p.outcomes[i].updates
	if i > 0 {
		from = p.outcomes[i-1].updates
	}
	for _, m := range p.batch.Met {
		if from <= m.Update && m.Update < to && (!known || m.At < at) {
			at, known = m.At, true
		}
	}
	return at, known
}

// counted reports for each pending event whether it changes any state that the answers are computed from.
func (p *pending) counted(reads []state.Read) []bool {
	counted, updates, event := make([]bool, len(p.outcomes)), map[string][]int{}, make([]int, len(p.batch.Updates))
	for i, from := 0, 0; i < len(p.outcomes); i++ {
		for u := from; u < p.outcomes[i].updates; u++ {
			event[u] = i
			entity := string(p.batch.Updates[u].Entity)
			updates[entity] = append(updates[entity], u)
		}
		from = p.outcomes[i].updates
	}
	for i := range reads {
		if reads[i].Stored {
			continue
		}
		for _, n := range updates[reads[i].Entity] {
			u := &p.batch.Updates[n]
			counted[event[n]] = counted[event[n]] || slices.ContainsFunc(p.batch.Mutations[u.From:u.To], func(m state.Mutation) bool {
				return m.Series.ID == reads[i].Series.ID && m.Series.Group == reads[i].Series.Group
			})
		}
	}
	return counted
}

// parseEvent parses an event of a question.
func parseEvent(x view, s sentEvent, v *fastjson.Value) (stream *record.Stream, event []byte, err error) {
	object, err := v.Object()
	switch {
	case err == nil:
	case s.pending >= 0:
		return nil, nil, s.locate(reply.WrongItem(s.key, "an object with stream and event, or a list of them", v))
	default:
		return nil, nil, reply.Wrong(s.key, "an object with stream and event", v)
	}
	var parts [2]*fastjson.Value
	if e := reply.Fields(object, s.name, pendingKeys, parts[:]); e != nil {
		return nil, nil, s.locate(e)
	}
	if parts[0] == nil || parts[1] == nil {
		return nil, nil, s.locate(reply.Errorf(reply.MissingKey, `%s must have stream and event, such as {"stream": "transaction", "event": {…}}`, s.name))
	}
	event = parts[1].MarshalTo(nil) // as sent: it has not been parsed
	text, err := parts[0].StringBytes()
	if err != nil {
		return nil, nil, s.locate(reply.Wrong("stream", "a name", parts[0]))
	}
	stream, ok := x.registry.Stream(string(text))
	if !ok {
		return nil, nil, s.locate(x.unknownStream(string(text)))
	}
	return stream, event, nil
}
