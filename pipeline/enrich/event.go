package enrich

import (
	"bytes"
	"iter"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// The headers of an enriched event, behind those that its record came with.
const (
	headerSourceStream    = "weir-stream"
	headerSourceTopic     = "weir-source-topic"
	headerSourcePartition = "weir-source-partition"
	headerSourceOffset    = "weir-source-offset"
)

// Plan is what is told of the events of one stream.
type Plan struct {
	stream   string
	topic    string
	features []planned
}

type planned struct {
	*features.Feature
	keys    []string // sorted
	label   []byte   // its name in JSON, with a colon
	through bool     // it, or a part of it, is a multi-hop feature
}

// Plans are those of the streams that are enriched.
func Plans(r *features.Registry) map[*record.Stream]*Plan {
	plans := map[*record.Stream]*Plan{}
	for _, e := range r.Enrichments {
		plan := &Plan{stream: e.Stream.Name, topic: e.Topic}
		for _, f := range e.Service.Features {
			plan.features = append(plan.features, planned{
				Feature: f, keys: f.By, label: append(query.AppendString(nil, f.Name), ':'),
				through: f.FanOut() > 0,
			})
		}
		plans[e.Stream] = plan
	}
	return plans
}

// Event is an event on its way to a topic of enriched events.
type Event struct {
	plan      *Plan
	partition state.Partition
	offset    int64
	// Source is the place of its partition among the batch's Ranges.
	Range int
	// Before is how many of the batch's Updates those before the event have made,
	// and Touched how many they and the event have.
	Before, After int
	at, now       int64    // the event's time and its record's, in milliseconds
	entities      []entity // by feature
	answers       []query.Answer

	key, event []byte // event is JSON
	headers    []kafka.Header
	value      []byte // of the record to be written
}

// entity is what a feature is asked about.
type entity struct {
	text string
	// own is the feature where it is asked whether the entity has met the event's
	// own value before; else nil.
	own *features.Feature
	// without is the status where there is nothing to ask: the event lacks one of
	// the keys or the value to ask about, or came so late that state of its time
	// may be gone. It goes by the record alone, so that it is the same whenever it
	// is written.
	without query.Status
}

// NewEvent copies what is needed of an event.
func NewEvent(plan *Plan, e *record.Event, p state.Partition, rec *fetch.Record) *Event {
	n := &Event{
		plan: plan, partition: p, offset: rec.Offset, at: e.Time, now: e.Now,
		entities: make([]entity, len(plan.features)),
		key:      bytes.Clone(rec.Key), event: eventJSON(e, rec.Value),
		headers: append(rec.Headers.Copy(),
			kafka.Header{Key: headerSourceStream, Value: []byte(plan.stream)},
			kafka.Header{Key: headerSourceTopic, Value: []byte(p.Topic)},
			kafka.Header{Key: headerSourcePartition, Value: strconv.AppendInt(nil, int64(p.ID), 10)},
			kafka.Header{Key: headerSourceOffset, Value: strconv.AppendInt(nil, rec.Offset, 10)}),
	}
	var text []byte
	for i, f := range plan.features {
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
		if f.Membership() == aggregate.MembersNeeded && n.entities[i].without == "" {
			n.entities[i].ask(f.Feature, f.Own(e))
		}
	}
	return n
}

// eventJSON is the event as JSON: as it came, or its fields where its topic is of
// another format. What it lacks is left out.
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

// wanted are the event's features that are asked before it is added to the
// state, or after that.
func (n *Event) wanted(before bool) iter.Seq2[int, *features.Feature] {
	return func(yield func(int, *features.Feature) bool) {
		for i, f := range n.plan.features {
			e := &n.entities[i]
			asked := f.Feature
			if e.own != nil {
				asked = e.own
			}
			if e.without == "" && (e.own != nil) == before && !yield(i, asked) {
				return
			}
		}
	}
}

// want asks for features of the event.
func (n *Event) want(r *query.Reading, before bool) {
	for i, f := range n.wanted(before) {
		r.Want(f, n.entities[i].text, n.at)
	}
}

// wantThrough asks for the features of the event that go through a list.
func (n *Event) wantThrough(r *query.Reading) {
	for i, f := range n.wanted(false) {
		if n.plan.features[i].through {
			r.Want(f, n.entities[i].text, n.at)
		}
	}
}

// record is the event as it is written. Its time is that of the event's record,
// so that it is the same whenever it is written.
func (n *Event) record() kafka.Record {
	return kafka.Record{
		Key: kafka.NewBytes(n.key), Value: kafka.NewBytes(n.value), Headers: n.headers, Time: time.UnixMilli(n.now),
	}
}

// size is about how many bytes the record takes.
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
	out := make([]byte, 0, len(n.event)+128*(len(n.plan.features)+1))
	out = append(out, `{"event":`...)
	out = append(out, n.event...)
	out = append(out, `,"features":{`...)
	for i, f := range n.plan.features {
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
