// Package record decodes the records of topics into typed events: it reads the fields of a stream from a record, or
// says why the record cannot be used.
package record

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// Stream describes the events of one kind in a topic.
type Stream struct {
	Name   string
	Topic  string
	Match  *expr.Expr // selects the stream's records; nil selects all of the topic
	Format Format
	// Timestamp is the location of the event's time.
	Timestamp TimestampPath
	ID        []string // path of the event's identity; nil for none
	Fields    []Field
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
	// MaxBytes is the greatest length of a string that is kept; longer ones are shortened, see
	// value.Shorten.
	MaxBytes int
	Required bool       // a record without it is a poison event
	Path     []string   // nil for a derived field
	Expr     *expr.Expr // of a derived field, computed from those before it; else nil
}

// Paths returns the paths of the field's values in the record: two for a location, none for a derived field.
func (f *Field) Paths() [][]string {
	switch {
	case f.Path == nil:
		return nil
	case f.Type == value.Location:
		return [][]string{append(slices.Clone(f.Path), "lat"), append(slices.Clone(f.Path), "lon")}
	}
	return [][]string{f.Path}
}

// TypeAt returns the type of the value at one of the field's Paths: floats for a location.
func (f *Field) TypeAt(path []string) value.Type {
	if f.Type == value.Location && len(path) > len(f.Path) {
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
