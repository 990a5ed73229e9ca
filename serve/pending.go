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

// maxPending is how many pending events a question may have.
const maxPending = 16

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
	for i, v := range list {
		stream, time, err := q.pending.add(q.view, mapper, i, v, q.now)
		if err != nil {
			return err
		}
		if !q.given && (i == 0 || time > q.at) {
			// The event is being decided about now, although its time is a little earlier.
			q.at, q.present = time, q.now-stream.MaxFuture.Milliseconds()
		}
	}
	return nil
}

// add maps one of the pending events and returns its stream and its time.
func (p *pending) add(from view, mapper *features.Mapper, i int, v *fastjson.Value, now int64) (stream *record.Stream, time int64, err error) {
	stream, value, err := parsePendingEvent(from, i, v)
	if err != nil {
		return nil, 0, err
	}
	rec := record.Record{Partition: state.Partition{Topic: stream.Topic}, Offset: record.Unwritten, Timestamp: now, Value: value}
	mapped, err := mapper.Map(&rec, 0, p.batch)
	var poison *record.Poison
	switch {
	case errors.As(err, &poison):
		if !from.mayName(stream) { // nor its fields
			return nil, 0, reply.Errorf(reply.BadEvent, "pending event %d cannot be used in stream %q", i, stream.Name).InEvent(i)
		}
		e := reply.Errorf(reply.BadEvent, "pending event %d cannot be used: %v", i, poison).InEvent(i)
		e.Reason, e.Path = string(poison.Reason), poison.Path
		return nil, 0, e
	case err != nil:
		return nil, 0, err
	}
	n := slices.Index(mapped.Streams, stream.Name)
	if n < 0 {
		e := reply.Errorf(reply.BadEvent, "pending event %d does not belong to stream %q", i, stream.Name).InEvent(i)
		if from.mayName(stream) {
			e.Message += ", which takes events for which " + stream.Match.Text
		}
		return nil, 0, e
	}
	event := &mapped.Events[n]
	p.outcomes = append(p.outcomes, outcome{
		stream: stream.Name, time: event.Time, deduplicated: stream.RememberIDs > 0 && event.ID != nil, late: mapped.Late, updates: len(p.batch.Updates),
	})
	return stream, event.Time, nil
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

// parsePendingEvent parses a pending event.
func parsePendingEvent(x view, i int, v *fastjson.Value) (stream *record.Stream, event []byte, err error) {
	object, err := v.Object()
	if err != nil {
		return nil, nil, reply.WrongItem("pending", "an object with stream and event, or a list of them", v).InEvent(i)
	}
	var parts [2]*fastjson.Value
	if e := fields(object, "pending event "+strconv.Itoa(i), pendingKeys, parts[:]); e != nil {
		return nil, nil, e.InEvent(i)
	}
	if parts[0] == nil || parts[1] == nil {
		return nil, nil, reply.Errorf(reply.MissingKey, `pending event %d must have stream and event, such as {"stream": "transaction", "event": {…}}`, i).InEvent(i)
	}
	event = parts[1].MarshalTo(nil) // as sent: it has not been parsed
	text, err := parts[0].StringBytes()
	if err != nil {
		return nil, nil, reply.Wrong("stream", "a name", parts[0]).InEvent(i)
	}
	stream, ok := x.registry.Stream(string(text))
	if !ok {
		return nil, nil, x.unknownStream(string(text)).InEvent(i)
	}
	return stream, event, nil
}
