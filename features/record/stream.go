// Package record turns the records of topics into typed events: it says where
// in a record the fields of a stream stand, reads them, and says of a record
// that cannot be used why.
package record

import (
	"slices"
	"time"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/value"
)

// Stream describes the events of one kind in a topic.
type Stream struct {
	Name   string
	Topic  string
	Match  *expr.Expr // picks the stream's records; nil takes all of the topic
	Format Format
	// Timestamp is where the event's time stands.
	Timestamp TimestampPath
	ID        []string // path of the event's identity; nil for none
	Fields    []Field
	// RememberIDs is for how long entities remember the identities of their
	// events, by the times of their records; 0 for not at all.
	RememberIDs time.Duration
	// MaxFuture is how far an event's time may lie after its record's.
	MaxFuture time.Duration
	// LateToDeadLetter sends events to the dead-letter topic that come too late
	// for some of their features.
	LateToDeadLetter bool
}

// Kept is the value of a field as state keeps it.
func (s *Stream) Kept(field int, v value.Value) value.Value { return v.Kept(s.Fields[field].MaxBytes) }

// FieldIndex is the place of the field with that name, -1 for none.
func (s *Stream) FieldIndex(name string) int {
	return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
}

// TimestampPath is the place and the unit of an event's time.
type TimestampPath struct {
	Path []string
	Unit string // s, ms, us, ns, rfc3339 or datetime
}

// Field is one typed field of a stream.
type Field struct {
	Name  string
	Type  value.Type
	Scale uint8 // of a decimal
	// Unit is how a timestamp stands in the record, as of TimestampPath; where
	// it is empty it is a number of milliseconds or an RFC 3339 string.
	Unit string
	// MaxBytes is the longest text that is kept of a string; longer ones are
	// shortened, see value.Shorten.
	MaxBytes int
	Required bool       // a record without it is a poison event
	Path     []string   // nil for a derived field
	Expr     *expr.Expr // of a derived field, computed from those before it; else nil
}

// Paths are where the field's values stand in the record: two for a location, and
// none for a derived field.
func (f *Field) Paths() [][]string {
	switch {
	case f.Path == nil:
		return nil
	case f.Type == value.Location:
		return [][]string{append(slices.Clone(f.Path), "lat"), append(slices.Clone(f.Path), "lon")}
	}
	return [][]string{f.Path}
}

// TypeAt is the type of what the field reads at one of its Paths: a location's are
// floats.
func (f *Field) TypeAt(path []string) value.Type {
	if f.Type == value.Location && len(path) > len(f.Path) {
		return value.Float
	}
	return f.Type
}

// Variables are the fields as expressions name them, in their order.
func (s *Stream) Variables() []expr.Variable { return VariablesOf(s.Fields) }

// VariablesOf are fields as expressions name them, in their order.
func VariablesOf(fields []Field) []expr.Variable {
	list := make([]expr.Variable, len(fields))
	for i, f := range fields {
		list[i] = expr.Variable{Name: f.Name, Type: f.Type, Scale: f.Scale}
	}
	return list
}
