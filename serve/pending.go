package serve

import (
	"errors"
	"slices"
	"strconv"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
)

// maxPending is how many pending events a question may have.
const maxPending = 16

// mapPending maps the pending events as the processor will map their records, as if these were written now. It leaves
// their mutations in q.pending, and their outcomes in q.outcomes.
func (q *question) mapPending(x *index, v *fastjson.Value, momentGiven bool) error {
	list := []*fastjson.Value{v}
	switch v.Type() {
	case fastjson.TypeArray:
		list = v.GetArray()
	case fastjson.TypeObject:
	default:
		return wrongQuestion("pending", "an object with stream and event, or a list of them", v)
	}
	if len(list) > maxPending {
		return reply.Errorf(reply.TooManyValues, "%d pending events are more than the %d that one question may have", len(list), maxPending)
	}
	mapper := x.mappers.Get().(*features.Mapper)
	defer x.mappers.Put(mapper)
	q.pending = new(state.Batch)
	q.outcomes = append(q.outcomes, '[')
	for i, v := range list {
		stream, time, err := q.mapPendingEvent(x, mapper, i, v)
		if err != nil {
			return err
		}
		if !momentGiven && (i == 0 || time > q.at) {
			// The event is being decided about now, although its time is a little earlier.
			q.at, q.present = time, q.now-stream.MaxFuture.Milliseconds()
		}
	}
	q.outcomes = append(q.outcomes, ']')
	return nil
}

// mapPendingEvent maps one of the pending events and returns its stream and its time.
func (q *question) mapPendingEvent(x *index, mapper *features.Mapper, i int, v *fastjson.Value) (stream *record.Stream, time int64, err error) {
	stream, value, err := x.parsePendingEvent(i, v, q.client)
	if err != nil {
		return nil, 0, err
	}
	rec := record.Record{Partition: state.Partition{Topic: stream.Topic}, Offset: record.Unwritten, Timestamp: q.now, Value: value}
	outcome, err := mapper.Map(&rec, 0, q.pending)
	var poison *record.Poison
	switch {
	case errors.As(err, &poison):
		e := badEvent(i, "pending event %d cannot be used: %v", i, poison)
		e.Reason, e.Path = string(poison.Reason), poison.Path
		return nil, 0, e
	case err != nil:
		return nil, 0, err
	}
	n := slices.Index(outcome.Streams, stream.Name)
	if n < 0 {
		e := badEvent(i, "pending event %d does not belong to stream %q", i, stream.Name)
		if x.mayName(stream, q.client) {
			e.Message += ", which takes events for which " + stream.Match.Text
		}
		return nil, 0, e
	}
	event := &outcome.Events[n]
	if i > 0 {
		q.outcomes = append(q.outcomes, ',')
	}
	q.outcomes = append(q.outcomes, `{"stream":`...)
	q.outcomes = query.AppendString(q.outcomes, stream.Name)
	q.outcomes = append(q.outcomes, `,"time":`...)
	q.outcomes = strconv.AppendInt(q.outcomes, event.Time, 10)
	q.outcomes = append(q.outcomes, `,"deduplicated":`...)
	q.outcomes = strconv.AppendBool(q.outcomes, stream.RememberIDs > 0 && event.ID != nil)
	if outcome.Late {
		q.outcomes = append(q.outcomes, `,"late":true`...)
	}
	q.outcomes = append(q.outcomes, '}')
	return stream, event.Time, nil
}

// parsePendingEvent parses a pending event.
func (x *index) parsePendingEvent(i int, v *fastjson.Value, to *credentials.Client) (stream *record.Stream, event []byte, err error) {
	object, err := v.Object()
	if err != nil {
		e := wrongItem("pending", "an object with stream and event, or a list of them", v)
		e.Event = &i
		return nil, nil, e
	}
	var name *fastjson.Value
	object.Visit(func(k []byte, v *fastjson.Value) {
		switch key := string(k); {
		case err != nil:
		case key != "stream" && key != "event":
			e := badEvent(i, "pending event %d has no key %s; its keys are stream and event", i, reply.Quote(key))
			e.Code, e.Key, e.Nearest = reply.UnknownKey, key, reply.Nearest(key, []string{"stream", "event"})
			err = e
		case key == "stream" && name != nil, key == "event" && event != nil:
			e := duplicateKey(key, "pending event "+strconv.Itoa(i))
			e.Event = &i
			err = e
		case key == "stream":
			name = v
		default:
			event = v.MarshalTo(nil) // as sent: it has not been parsed
		}
	})
	switch name = given(name); {
	case err != nil:
		return nil, nil, err
	case name == nil || event == nil || string(event) == "null":
		e := badEvent(i, `pending event %d must have stream and event, such as {"stream": "transaction", "event": {…}}`, i)
		e.Code = reply.MissingKey
		return nil, nil, e
	}
	text, err := name.StringBytes()
	if err != nil {
		e := wrongQuestion("stream", "a name", name)
		e.Event = &i
		return nil, nil, e
	}
	stream, ok := x.registry.Stream(string(text))
	if !ok {
		e := x.unknownStream(string(text), to)
		e.Event = &i
		return nil, nil, e
	}
	return stream, event, nil
}

// badEvent returns the error for a pending event that cannot be used.
func badEvent(i int, format string, args ...any) *reply.Error {
	e := reply.Errorf(reply.BadEvent, format, args...)
	e.Event = &i
	return e
}
