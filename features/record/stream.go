// Package record decodes the records of topics into typed events: it reads the fields of a stream from a record, or
// says why the record cannot be used.
package record

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// Stream describes the events of one kind in a topic, or in several.
type Stream struct {
	Name   string
	Topic  string     // the first of several
	Others []*Stream  // the stream as its other topics have it, with the same fields, which may be read in another way
	Match  *expr.Expr // selects the stream's records; nil selects all of the topic
	Format Format
	// Timestamp is the location of the event's time. Without a path, as only rows of tables may have it, that is the time of
	// the record.
	Timestamp TimestampPath
	ID        []string // path of the event's identity; nil for none
	// Each is the path of an array, of which each element makes an event; nil for one event of a record. Paths that lead
	// through it lead into the element. An identity outside of the element is followed by "/" and the element's index.
	Each   []string
	Fields []Field
	// RememberIDs is how long entities remember the identities of their events, by the times of
	// their records; 0 if they do not.
	RememberIDs time.Duration
	// Dedup is for how long before an event an earlier one of its ID and partition makes it a repetition, which does not
	// count, see Earlier; 0 if all count.
	Dedup time.Duration
	// MaxFuture is how far an event's time may lie after its record's.
	MaxFuture time.Duration
	// LateToDeadLetter sends events that are too late for some of their features to the dead-letter
	// topic.
	LateToDeadLetter bool
}

// Sources returns the stream as each of its topics has it, itself first.
func (s *Stream) Sources() []*Stream { return append([]*Stream{s}, s.Others...) }

// Topics returns the topics that the stream reads, in the order in which they are defined.
func (s *Stream) Topics() (topics []string) {
	for _, in := range s.Sources() {
		topics = append(topics, in.Topic)
	}
	return topics
}

// In returns the stream as a topic has it; nil if it does not read that.
func (s *Stream) In(topic string) *Stream {
	for _, in := range s.Sources() {
		if in.Topic == topic {
			return in
		}
	}
	return nil
}

// Within reports whether a path leads into the elements that make the stream's events.
func (s *Stream) Within(path []string) bool {
	return s.Each != nil && len(path) >= len(s.Each) && slices.Equal(path[:len(s.Each)], s.Each)
}

// Kept returns the value of a field as state keeps it.
func (s *Stream) Kept(field int, v value.Value) value.Value { return v.Kept(s.Fields[field].MaxBytes) }

// AppendKept appends the text of a field's value as state keeps it.
func (s *Stream) AppendKept(dst []byte, field int, v *value.Value) []byte {
	if v.Type == value.String {
		return value.Shorten(dst, v.Str, s.Fields[field].MaxBytes)
	}
	return v.AppendText(dst)
}

// FieldIndex returns the index of the field with that name, -1 for none.
func (s *Stream) FieldIndex(name string) int {
	return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
}

// TimeAt makes a required field of a time at a path, in dotted form. It has the form that the stream names for the same path,
// and is else a number of milliseconds or an RFC 3339 string.
func (s *Stream) TimeAt(path, name string) Field {
	at := Field{Name: name, Type: value.Timestamp, Path: strings.Split(path, "."), Required: true}
	if slices.Equal(at.Path, s.Timestamp.Path) {
		at.Form = s.Timestamp.Form
	}
	for _, f := range s.Fields {
		if f.Type == value.Timestamp && slices.Equal(at.Path, f.Path) {
			at.Form = f.Form
		}
	}
	return at
}

// TimestampPath is the path and the form of an event's time.
type TimestampPath struct {
	Path []string
	Form TimeForm
	// Optional means that an event without it has the time of its record.
	Optional bool
}

// Field is one typed field of a stream.
type Field struct {
	Name  string
	Type  value.Type
	Scale uint8    // of a decimal
	Form  TimeForm // of a timestamp
	// Base64 means that a decimal is a text: its digits without the point, as a big-endian integer in two's complement, in
	// base64; or an object with such a value and a scale of its own.
	Base64 bool
	// Exponent is the power of ten by which the number in the record is multiplied to be a decimal. Digits in base64 have
	// -Scale if it is 0.
	Exponent int
	// Round means that digits of a decimal beyond its scale are rounded, half away from zero; else they are refused.
	Round bool
	// Lenient means that a text is read as what it holds: a number, true, false, 1 or 0. A bool may be the number 1 or 0.
	Lenient bool
	// NullValues are texts and numbers, as they are written in the record, that mean null.
	NullValues []string
	// Lat and Lon are the paths of a location's degrees, if they are not lat and lon below Path.
	Lat, Lon []string
	// Point is how a location is written that is one value, as in Points; empty for two.
	Point string
	// MaxBytes is the greatest length of a string that is kept; longer ones are shortened, see
	// value.Shorten.
	MaxBytes int
	Required bool       // a record without it is a poison event
	Path     []string   // nil for a derived field, and for a location with Lat and Lon
	Expr     *expr.Expr // of a derived field, computed from those before it; else nil
}

// Paths returns the paths of the field's values in the record: two for a location, none for a derived field.
func (f *Field) Paths() [][]string {
	switch {
	case f.Expr != nil:
		return nil
	case f.Type == value.Location && f.Point == "":
		lat, lon := f.degrees()
		return [][]string{lat, lon}
	}
	return [][]string{f.Path}
}

// degrees returns the paths of a location's degrees.
func (f *Field) degrees() (lat, lon []string) {
	if f.Lat != nil {
		return f.Lat, f.Lon
	}
	return append(slices.Clone(f.Path), "lat"), append(slices.Clone(f.Path), "lon")
}

// Reading describes how the field is read beside its path, type and form: words with a space before each, empty for none.
func (f *Field) Reading() (text string) {
	add := func(given bool, format string, args ...any) {
		if given {
			text += fmt.Sprintf(" "+format, args...)
		}
	}
	add(f.Base64, "base64")
	add(f.Exponent != 0, "exponent %d", f.Exponent)
	add(f.Round, "rounded")
	add(f.Lenient && f.Type != value.Timestamp, "lenient") // a timestamp's form says it
	add(len(f.NullValues) > 0, "null %q", f.NullValues)
	add(f.Lat != nil, "lat %q lon %q", f.Lat, f.Lon)
	add(f.Point != "", "%s", f.Point)
	return text
}

// TypeRead returns the type of the values at the field's Paths, floats for a location; Null if it may be of several.
func (f *Field) TypeRead() value.Type {
	if f.Lenient {
		return value.Null
	}
	if f.Type == value.Location {
		if f.Point != "" {
			return value.String
		}
		return value.Float
	}
	return f.Type
}

// Variables returns the fields as expressions name them, in order.
func (s *Stream) Variables() []expr.Variable { return VariablesOf(s.Fields) }

// VariablesOf returns fields as expressions name them, in order.
func VariablesOf(fields []Field) []expr.Variable {
	list := make([]expr.Variable, len(fields))
	for i, f := range fields {
		list[i] = expr.Variable{Name: f.Name, Type: f.Type, Scale: f.Scale}
	}
	return list
}
