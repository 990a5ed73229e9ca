package record

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Record is one record of a topic.
type Record struct {
	Partition  state.Partition
	Offset     int64
	Timestamp  int64 // milliseconds since 1970; NoTime if it is not of a topic
	Key, Value []byte
	Headers    Headers // nil for none
	Log        string  // the tag of the log that Offset belongs to, see state.LogID; empty if unknown
	// Earlier is what is known of the records before it; nil if it repeats none of them.
	Earlier *Earlier
}

const (
	// Unwritten is the offset of a record that counts as coming after all others.
	Unwritten = math.MaxInt64
	// NoTime is the timestamp of a record that is not of a topic: its event has its own time, whatever that is.
	NoTime = math.MinInt64
)

// Headers are the headers of a record.
type Headers interface {
	// Last returns the value of the last header with this key, the one that counts by Kafka's convention.
	Last(key string) (value []byte, ok bool)
	// All iterates over the headers in the order in which they were written. A value is nil where the producer gave none.
	All() iter.Seq2[string, []byte]
}

// Event is a record as one stream sees it.
type Event struct {
	Stream *Stream
	Time   int64 // milliseconds since 1970
	// Now is the record's time, against which lateness is judged, or the event's own time if the
	// record has none.
	Now int64
	// ID is the text of the event's own ID; nil if its stream has none, or the record lacks it or has an empty one.
	ID     []byte
	Values []value.Value // of the stream's fields, in their order
}

// Entity appends the text of the event's entity with those keys, sorted names of fields. ok is
// false if one of them is null or not a field of its stream: the event has no such entity.
func (e *Event) Entity(dst []byte, keys []string) (entity []byte, ok bool) {
	for i, key := range keys {
		field := e.Stream.FieldIndex(key)
		if field < 0 || e.Values[field].IsNull() {
			return dst, false
		}
		dst = state.AppendEntity(dst, i == 0, e.Values[field])
	}
	return dst, true
}

// Clone returns a copy of the event that shares no memory with its record or its decoder.
func (e *Event) Clone() *Event {
	c := *e
	c.ID, c.Values = bytes.Clone(e.ID), slices.Clone(e.Values)
	for i := range c.Values {
		c.Values[i].Str = bytes.Clone(c.Values[i].Str)
	}
	return &c
}

// Decoder decodes records into events. The result depends on the record and the streams only, never
// on the clock. It is not safe for concurrent use.
//
// All streams of a topic have the same format. If a field occurs twice in a record, the last one counts. Values have
// the types of their fields, without conversions unless the field asks for them:
//
//	string     a string of valid UTF-8
//	int        a number without a fraction (1.0 and 1e3 have none) of 64 bits
//	float      a number that a 64-bit float holds
//	decimal    a number, or a string that holds one, with no more digits after
//	           the point than its scale, but for zeros
//	bool       true or false
//	timestamp  what the field's TimeForm says; times up to the first day of 1900 and those of the last
//	           of 9999, in any zone, are null: programs write them where there is no time
//	location   {"lat": -90 to 90, "lon": -180 to 180}, in degrees, or as the field says
//
// A text without a type in its format is read as the type of the field: numbers in JSON's syntax, bools as true, false,
// 1 or 0. Any field may be null or absent unless it is required.
type Decoder struct {
	// MaxRecordBytes is the length of a record's value above which it is poison; 0 for none.
	MaxRecordBytes int

	topics map[string]*topicDecoder
	topic  string        // of the last record
	last   *topicDecoder // its decoder; nil for none
	record Record        // a copy for scanners, so that the caller's own may stay on its stack
	events []Event
}

// topicDecoder reads all streams of a topic in one pass.
type topicDecoder struct {
	tree    *Node
	scanner Scanner
	values  []Datum // by slot; the slots of elements follow those of the tree
	scanned []Datum // those of the tree
	streams []*streamDecoder
	// withoutValue means that records without a value may be events. In other topics they are tombstones, which say that a
	// compacted topic drops the records of their key.
	withoutValue bool
}

// valueless is a Scanner of records that may be events without having a value.
type valueless interface{ readsWithoutValue() }

type streamDecoder struct {
	of         *Stream // whose events they are
	stream     *Stream // as the topic has it
	tree       *Node   // the topic's
	data       []Datum // the topic's, by slot
	match      *expr.Expr
	matchSlots []int
	matched    []value.Value // values that the match reads
	time       *Node
	id         *Node // nil for none
	fields     []fieldDecoder
	values     []value.Value
	elements   *elements // nil for a stream of one event of a record
}

type fieldDecoder struct {
	*Field
	node     *Node         // nil for a derived field, and a location without a value of its own
	lat, lon *Node         // of a location's degrees
	scaled   *scaledReader // of a decimal in base64
	expr     *expr.Expr
}

// NewDecoder makes a decoder of the records of streams.
func NewDecoder(streams []*Stream) *Decoder {
	return newDecoder(streams, func(s *Stream) Format { return s.Format })
}

// NewJSONDecoder makes a decoder of events given as JSON objects, independent of the format of their streams' records:
// the fields have the same paths.
func NewJSONDecoder(streams []*Stream) *Decoder {
	return newDecoder(streams, func(*Stream) Format { return JSON })
}

// NewTextDecoder makes a decoder of records given as texts of JSON. A record of a format in JSON is as in its topic, and a
// line of a CSV is a string. One of another format is an object with the same paths.
func NewTextDecoder(streams []*Stream) *Decoder {
	return newDecoder(streams, func(s *Stream) Format {
		switch f := s.Format.(type) {
		case debeziumFormat, cloudEventsFormat:
			return f
		case *csvFormat:
			return csvTextFormat{f}
		}
		return JSON
	})
}

func newDecoder(streams []*Stream, formatOf func(*Stream) Format) *Decoder {
	d := &Decoder{topics: map[string]*topicDecoder{}}
	for _, s := range streams {
		for _, in := range s.Sources() {
			t := d.topics[in.Topic]
			if t == nil {
				t = &topicDecoder{tree: &Node{}}
				d.topics[in.Topic] = t
			}
			t.streams = append(t.streams, newStreamDecoder(s, in, t.tree))
		}
	}
	for _, t := range d.topics {
		slots := t.tree.number(0)
		for _, s := range t.streams {
			slots = s.elements.number(slots)
		}
		t.values = make([]Datum, slots)
		t.scanned = t.values[:t.tree.until:t.tree.until]
		t.scanner = formatOf(t.streams[0].stream).NewScanner(t.tree)
		_, t.withoutValue = t.scanner.(valueless)
		for _, s := range t.streams {
			s.data = t.values
			s.findSlots()
		}
	}
	return d
}

func newStreamDecoder(of, s *Stream, tree *Node) *streamDecoder {
	d := &streamDecoder{of: of, stream: s, tree: tree, match: s.Match.Clone(), values: make([]value.Value, len(s.Fields))}
	if s.Each != nil {
		d.elements = newElements(tree.add(s.Each))
	}
	d.time = d.node(s.Timestamp.Path)
	if d.match != nil {
		d.matched = make([]value.Value, len(d.match.Paths()))
		for _, path := range d.match.Paths() {
			d.node(path)
		}
	}
	if s.ID != nil {
		d.id = d.node(s.ID)
	}
	for i := range s.Fields {
		f := fieldDecoder{Field: &s.Fields[i], expr: s.Fields[i].Expr.Clone()}
		if f.expr == nil {
			if f.Lat == nil {
				f.node = d.node(f.Path)
			}
			if f.Base64 {
				f.scaled = newScaledReader()
			}
			if f.Type == value.Location && f.Point == "" {
				lat, lon := f.degrees()
				f.lat, f.lon = d.node(lat), d.node(lon)
			}
		}
		d.fields = append(d.fields, f)
	}
	return d
}

// node finds or makes the node at a path in the record, or in the elements.
func (s *streamDecoder) node(path []string) *Node {
	if s.stream.Within(path) {
		return s.elements.tree.add(path[len(s.stream.Each):])
	}
	return s.tree.add(path)
}

// findSlots notes slots, which are known once the topic's trees are complete.
func (s *streamDecoder) findSlots() {
	if s.match != nil {
		for _, path := range s.match.Paths() {
			s.matchSlots = append(s.matchSlots, s.node(path).slot)
		}
	}
}

// Decode decodes a record: one event for each stream that accepts it, or each element of it, ordered by the streams' names,
// none if no stream does. The events are valid until the next Decode and may alias the record. Its error is a *Poison or a
// *MissingSchema.
func (d *Decoder) Decode(rec *Record) ([]Event, error) {
	if d.MaxRecordBytes > 0 && len(rec.Value) > d.MaxRecordBytes {
		return nil, &Poison{Reason: Oversized, Message: fmt.Sprintf("the record has %d bytes; the limit is %d", len(rec.Value), d.MaxRecordBytes)}
	}
	d.events = d.events[:0]
	t := d.of(rec.Partition.Topic)
	if t == nil || rec.Value == nil && !t.withoutValue {
		return nil, nil
	}
	d.record = *rec
	if err := t.scanner.Scan(&d.record, t.scanned); err != nil {
		return nil, t.named(err)
	}
	if t.values[0].Type == Absent {
		return nil, nil
	}
	for _, s := range t.streams {
		var err error
		if s.elements != nil {
			err = d.eachElement(s, rec.Timestamp)
		} else {
			err = d.event(s, rec.Timestamp)
		}
		if err != nil {
			return nil, err
		}
	}
	return d.events, nil
}

// event adds the event that a stream reads from what was scanned, if the stream takes it.
func (d *Decoder) event(s *streamDecoder, recorded int64) error {
	takes, err := s.matches()
	if !takes || err != nil {
		return err
	}
	e := Event{Stream: s.of, Now: recorded, Values: s.values}
	if e.Time, err = s.eventTime(recorded); err != nil {
		return err
	}
	if e.Time > state.LastEventTime { // of a record without a time, or with one in another unit
		return s.poison(BadTimestamp, s.stream.Timestamp.Path, "the event is of the year %d; state holds events up to October 6429", time.UnixMilli(e.Time).UTC().Year())
	}
	if recorded == NoTime {
		e.Now = e.Time
	}
	if e.ID, err = s.identity(); err != nil {
		return err
	}
	if err := s.readFields(); err != nil {
		return err
	}
	d.events = append(d.events, e)
	return nil
}

// of returns the decoder of a topic, nil for none. Most records are of the same topic as the last one.
func (d *Decoder) of(topic string) *topicDecoder {
	if topic != d.topic {
		d.topic, d.last = topic, d.topics[topic]
	}
	return d.last
}

// named adds the stream to an error of the whole record, if the topic has only one.
func (t *topicDecoder) named(err error) error {
	if p, ok := err.(*Poison); ok && len(t.streams) == 1 {
		p.Stream = t.streams[0].stream.Name
	}
	return err
}

func (s *streamDecoder) poison(reason Reason, path []string, format string, args ...any) error {
	return &Poison{
		Reason: reason, Stream: s.stream.Name, Path: strings.Join(path, "."), Message: fmt.Sprintf(format, args...),
	}
}

func (s *streamDecoder) matches() (bool, error) {
	if s.match == nil {
		return true, nil
	}
	for i, slot := range s.matchSlots {
		s.matched[i] = s.data[slot].value()
	}
	ok, err := s.match.True(s.matched)
	if err != nil {
		return false, s.poison(BadExpression, nil, "match: %v", err)
	}
	return ok, nil
}

// identity returns the text of the event's identity, a string or a number. It is nil if there is none: an empty text, which an
// unset field of Protobuf has, would make all such events one.
func (s *streamDecoder) identity() ([]byte, error) {
	if s.id == nil {
		return nil, nil
	}
	switch at := &s.data[s.id.slot]; at.Type {
	case Absent:
		return nil, s.reachable(WrongType, s.id, s.stream.ID)
	case Null:
		return nil, nil
	case Number:
		return at.Text, nil
	case String, Untyped:
		if !at.validUTF8() {
			return nil, s.poison(InvalidUTF8, s.stream.ID, "the string is not valid UTF-8")
		}
		if len(at.Text) == 0 {
			return nil, nil
		}
		return at.Text, nil
	default:
		return nil, s.poison(WrongType, s.stream.ID, "expected a string or a number, found %s", at.describe())
	}
}

func (s *streamDecoder) readFields() error {
	for i := range s.fields {
		f, v := &s.fields[i], &s.values[i]
		var err error
		if f.expr != nil {
			*v, err = f.derive(s)
		} else {
			err = s.field(f, v)
		}
		if err != nil {
			return err
		}
		if f.Required && v.Type == value.Null {
			return s.poison(MissingField, f.pathInRecord(), "the field %s is required", f.Name)
		}
	}
	return nil
}

// pathInRecord returns the field's path, for messages.
func (f *fieldDecoder) pathInRecord() []string {
	if f.Path == nil {
		return []string{f.Name}
	}
	return f.Path
}

func (f *fieldDecoder) derive(s *streamDecoder) (value.Value, error) {
	v, err := f.expr.Eval(s.values)
	if err == nil && v.Type == value.Decimal {
		v, err = atScale(v, f.Scale)
	}
	if err != nil {
		return v, s.poison(BadExpression, f.pathInRecord(), "%v", err)
	}
	return v, nil
}

// atScale converts a decimal to the scale of its field.
func atScale(v value.Value, scale uint8) (value.Value, error) {
	for ; v.Scale > scale; v.Scale-- {
		if v.Num%10 != 0 {
			return v, fmt.Errorf("the result has more than %d digits after the decimal point", scale)
		}
		v.Num /= 10
	}
	num, ok := value.Rescale(&v, scale)
	if !ok {
		return v, expr.ErrOverflow
	}
	return value.Value{Type: value.Decimal, Num: num, Scale: scale}, nil
}
