package enrich

import (
	"bytes"
	"hash/maphash"
	"iter"
	"maps"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/align"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// The headers of an enriched event, after those of its record.
const (
	headerSourceStream    = "weir-stream"
	headerSourceTopic     = "weir-source-topic"
	headerSourcePartition = "weir-source-partition"
	headerSourceOffset    = "weir-source-offset"
)

// Stream is a stream whose events are enriched, and the features to add.
type Stream struct {
	name  string
	topic string
	// In Avro the schema of events, and its subject in the registry; empty for JSON.
	subject, schema string
	maxFuture       int64 // milliseconds, see query.Reading.SetPresent
	features        []streamFeature
	tables          []*features.Table // that the features look up
	inHand          bool              // some feature reads the event's own fields
}

type streamFeature struct {
	*features.Feature
	keys     []string // sorted
	label    []byte   // its name in JSON, with a colon
	multiHop bool     // it, or a part of it, is multi-hop
}

// Streams returns those that the registry enriches.
func Streams(r *features.Registry) map[*record.Stream]*Stream {
	streams := map[*record.Stream]*Stream{}
	for _, e := range r.Enrichments {
		stream := &Stream{name: e.Stream.Name, topic: e.Topic, maxFuture: e.Stream.MaxFuture.Milliseconds()}
		if e.Avro {
			stream.subject, stream.schema = Schema(e)
		}
		for _, f := range e.Service.Features {
			stream.features = append(stream.features, streamFeature{
				Feature: f, keys: f.By, label: append(query.AppendString(nil, f.Name), ':'),
				multiHop: f.FanOut() > 0,
			})
			stream.inHand = stream.inHand || f.InHand != nil
		}
		stream.tables = features.TablesOf(e.Service.Features)
		streams[e.Stream] = stream
	}
	return streams
}

// Event is an event on its way to a topic of enriched events.
type Event struct {
	stream    *Stream
	partition state.Partition
	offset    int64
	// Range is the index of its partition in the Ranges of the batch.
	Range int
	// Before is the number of the batch's Updates by earlier events; After includes this event's.
	Before, After int
	at, now       int64    // the event's time and its record's, in milliseconds
	entities      []entity // by feature
	answers       []query.Answer
	inHand        *record.Event // the event itself, if a feature reads its fields

	key, event []byte // event is in the format to be written
	headers    []kafka.Header
	value      []byte // of the record to be written
}

// entity is the entity that a feature is asked about.
type entity struct {
	text string
	// own is the feature if the question is whether the entity has had the event's value; else nil.
	own *features.Feature
	// before is true if the feature is asked before the event is added to the state.
	before bool
	// without is the status if there is nothing to ask: the event lacks one of the keys or the value to ask about, or
	// was so late that state of its time may be gone. It depends on the record alone, so it is the same each time the
	// event is written.
	without query.Status
}

// NewEvent copies what is needed of an event.
func NewEvent(stream *Stream, e *record.Event, p state.Partition, rec *fetch.Record) *Event {
	n := &Event{
		stream: stream, partition: p, offset: rec.Offset, at: e.Time, now: e.Now,
		entities: make([]entity, len(stream.features)),
		key:      bytes.Clone(rec.Key),
		headers: append(rec.Headers.Copy(),
			kafka.Header{Key: headerSourceStream, Value: []byte(stream.name)},
			kafka.Header{Key: headerSourceTopic, Value: []byte(p.Topic)},
			kafka.Header{Key: headerSourcePartition, Value: strconv.AppendInt(nil, int64(p.ID), 10)},
			kafka.Header{Key: headerSourceOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)}),
	}
	if stream.inHand {
		n.inHand = e.Clone()
	}
	if stream.schema != "" {
		n.event = eventAvro(e)
	} else {
		n.event = eventJSON(e, rec.Value)
	}
	var text []byte
	for i, f := range stream.features {
		var named bool
		text, named = e.Entity(text[:0], f.keys)
		switch {
		case !named:
			n.entities[i].without = query.NotFound
		case f.Forgets() && e.Time < e.Now-f.Keep.Milliseconds():
			n.entities[i].without = query.OutsideMaxAge
		default:
			n.entities[i].text = string(text)
		}
		n.entities[i].before = f.BeforeCurrent()
		if f.Membership() == aggregate.MembersRequired && n.entities[i].without == "" {
			n.entities[i].ask(f.Feature, f.Own(e))
		}
	}
	return n
}

// eventJSON returns the event as JSON: unchanged, or its fields if its topic has another format. Missing fields are
// left out.
func eventJSON(e *record.Event, value []byte) []byte {
	if e.Stream.Format == record.JSON {
		return bytes.Clone(bytes.TrimSpace(value))
	}
	object := []byte{'{'}
	for i, v := range e.Values {
		if v.IsNull() {
			continue
		}
		if len(object) > 1 {
			object = append(object, ',')
		}
		object = append(query.AppendString(object, e.Stream.Fields[i].Name), ':')
		object = query.AppendTyped(object, v)
	}
	return append(object, '}')
}

// ask asks a feature about the event's own value.
func (e *entity) ask(f *features.Feature, own value.Value) {
	if own.IsNull() {
		e.without = query.NullValue
		return
	}
	own.Str = bytes.Clone(own.Str)
	e.own = f.AskedAbout([]value.Value{own})
}

// wanted returns those of the event's features that are asked before the event is added to the state, or those that are
// asked after.
func (n *Event) wanted(before bool) iter.Seq2[int, *features.Feature] {
	return func(yield func(int, *features.Feature) bool) {
		for i, f := range n.stream.features {
			e := &n.entities[i]
			asked := f.Feature
			if e.own != nil {
				asked = e.own
			}
			if e.without == "" && e.before == before && !yield(i, asked) {
				return
			}
		}
	}
}

// present returns the first moment, in ms, that counts as the present of the event: its record's time is that of the clock, unless
// records were applied that are further ahead than partitions may be. newest is the time of the newest one.
func (n *Event) present(newest int64) int64 {
	return max(n.now, newest-align.MaxApart.Milliseconds()) - n.stream.maxFuture
}

// want requests the features of the event.
func (n *Event) want(r *query.Reading, before bool) {
	for i, f := range n.wanted(before) {
		r.Want(f, n.entities[i].text, n.at)
	}
}

// wantMultiHop requests the features of the event that go through a list.
func (n *Event) wantMultiHop(r *query.Reading) {
	for i, f := range n.wanted(false) {
		if n.stream.features[i].multiHop {
			r.Want(f, n.entities[i].text, n.at)
		}
	}
}

// record returns the record to be written. It has the time of the event's record, so it is the same each time it is
// written.
func (n *Event) record() kafka.Record {
	return kafka.Record{
		Key: kafka.NewBytes(n.key), Value: kafka.NewBytes(n.value), Headers: n.headers, Time: time.UnixMilli(n.now),
	}
}

// size is about the number of bytes of the record.
func (n *Event) size() int {
	const rest = 64 // lengths, offset and time
	size := rest + len(n.key) + len(n.value)
	for _, h := range n.headers {
		size += len(h.Key) + len(h.Value)
	}
	return size
}

// encode makes the value of the event's record from its answers.
func (n *Event) encode() {
	if n.stream.schema != "" {
		n.encodeAvro()
	} else {
		n.encodeJSON()
	}
}

func (n *Event) encodeJSON() {
	out := make([]byte, 0, len(n.event)+128*(len(n.stream.features)+1))
	out = append(out, `{"event":`...)
	out = append(out, n.event...)
	out = append(out, `,"features":{`...)
	for i, f := range n.stream.features {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, f.label...)
		if without := n.entities[i].without; without != "" {
			out = append(out, `{"value":null,"status":"`+without+`"}`...)
			continue
		}
		out = n.answers[i].AppendJSON(out)
	}
	n.value = append(out, "}}"...)
}

// writtenEvents are the events of ranges of which others could not be written: those that go to another topic, or to
// another partition of it. They are read again for as long as that lasts, and must not be written each time. It holds the
// hashes of the events by the place of their records: a log that was made again may have another one there.
type writtenEvents map[state.Partition]map[eventPlace]uint64

type eventPlace struct {
	stream *Stream
	offset int64
}

var eventSeed = maphash.MakeSeed()

func (n *Event) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(eventSeed)
	maphash.WriteComparable(&h, [...]int64{n.at, n.now, int64(len(n.key))})
	_, _ = h.Write(n.key) // it never fails
	_, _ = h.Write(n.event)
	return h.Sum64()
}

func (w writtenEvents) has(n *Event) bool {
	hash, known := w[n.partition][eventPlace{n.stream, n.offset}]
	return known && hash == n.hash()
}

// forget forgets those of a partition before an offset.
func (w writtenEvents) forget(p state.Partition, until int64) {
	maps.DeleteFunc(w[p], func(at eventPlace, _ uint64) bool { return at.offset < until })
}

func (w writtenEvents) add(n *Event) {
	if w[n.partition] == nil {
		w[n.partition] = map[eventPlace]uint64{}
	}
	w[n.partition][eventPlace{n.stream, n.offset}] = n.hash()
}
