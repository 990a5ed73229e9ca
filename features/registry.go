package features

import (
	"time"

	"github.com/weir-stream/weir/features/kinds"
)

// Registry is what definitions compile to. It is never changed once loaded.
type Registry struct {
	Streams  []*Stream  // by name
	Features []*Feature // by name
	Services []*Service // by name
	Series   []*kinds.Series
}

// Stream describes the events of one kind in a topic.
type Stream struct {
	Name   string
	Topic  string
	Match  *Expr // picks the stream's records; nil takes all of the topic
	Format string
	// Timestamp is where the event's time stands.
	Timestamp TimestampPath
	ID        []string // path of the event's identity; nil for none
	Fields    []Field
	// MaxFuture is how far an event's time may lie after its record's.
	MaxFuture time.Duration
	// LateToDeadLetter sends events to the dead-letter topic that come too late
	// for some of their features.
	LateToDeadLetter bool

	writes []entityWrites // what each event does; see Mapper
}

// TimestampPath is the place and the unit of an event's time.
type TimestampPath struct {
	Path []string
	Unit string // s, ms, us, ns, rfc3339 or datetime
}

// Field is one typed field of a stream.
type Field struct {
	Name  string
	Type  kinds.Type
	Scale uint8 // of a decimal
	// Unit is how a timestamp stands in the record, as of TimestampPath; where
	// it is empty it is a number of milliseconds or an RFC 3339 string.
	Unit     string
	Required bool // a record without it is a poison event
	Path     []string
	Expr     *Expr // of a derived field, computed from those before it; else nil
}

// entityWrites are the series that one stream keeps of one entity.
type entityWrites struct {
	by     []int // fields that make the entity, in the order of their names
	series []seriesWrite
	log    *logWrite // nil where no feature needs the events themselves
}

// logWrite is the log that a stream keeps of an entity.
type logWrite struct {
	series  *kinds.Series
	every   bool // some feature counts every event, and not only filtered ones
	columns []logColumn
}

// logColumn is a column of a log, of a field, a filter or a condition.
type logColumn struct {
	kinds.Column
	field int   // -1 for an expression
	where *Expr // nil for a field
	// filters says that some feature takes the events for which where is true,
	// so that they are to be kept.
	filters bool
}

// seriesWrite is one series that an event of the stream writes.
type seriesWrite struct {
	series *kinds.Series
	where  *Expr // nil takes every event
	field  int   // of the measure; -1 for none
}

// Feature is one question that can be asked.
type Feature struct {
	Name        string
	Description string
	Owner       string
	Definition  string // in the one-line form
	Stream      *Stream
	By          []string // the entity's fields as the definition orders them
	ByTypes     []kinds.Type
	Kind        kinds.Kind
	Call        kinds.Call
	Window      Window
	Keep        time.Duration   // how far back a question may ask
	Series      []*kinds.Series // one for each of the kind's measures; the log for exact windows
	Where       string
	Field       string // of the kind; empty for none
	Condition   string // of the kind; empty for none

	// Parts are the features that a derived one is computed from, in the order
	// in which Expr takes their values. A derived feature has no stream, kind,
	// call and window of its own; its series are those of its parts, one for
	// each read.
	Parts []*Feature
	Expr  *Expr // over the values of Parts; nil for none
	// Default stands for a null result of Expr.
	Default kinds.Value
	// keys are by part the places of its keys among the feature's own, both in
	// the order of their names.
	keys [][]int

	// The columns of the log that an exact window looks at; nil where it needs
	// no field, no filter or no condition.
	field, filter, condition *kinds.Column
}

// Service is a named list of features that is asked for as one.
type Service struct {
	Name     string
	Features []*Feature
}

// Window is the stretch of event time that a feature looks at.
type Window struct {
	// Size is the length of a rolling window; 0 is all there ever was.
	Size time.Duration
	// Tile is the width of its tiles; 0 for a lifetime, and for Exact.
	Tile time.Duration
	// Exact windows are cut to the millisecond, out of the entity's log.
	Exact bool
	// ClosedLeft and OpenRight turn the edges of an exact window round, which
	// by default leaves out its left one and has its right one.
	ClosedLeft, OpenRight bool
	// Delay is by how much the window ends before the moment asked for.
	Delay time.Duration
}

// Feature finds a feature by its name.
func (r *Registry) Feature(name string) (*Feature, bool) {
	return find(r.Features, name, func(f *Feature) string { return f.Name })
}

// Service finds a service by its name.
func (r *Registry) Service(name string) (*Service, bool) {
	return find(r.Services, name, func(s *Service) string { return s.Name })
}

// Stream finds a stream by its name.
func (r *Registry) Stream(name string) (*Stream, bool) {
	return find(r.Streams, name, func(s *Stream) string { return s.Name })
}
