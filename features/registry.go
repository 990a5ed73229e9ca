package features

import (
	"slices"
	"time"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Registry is what definitions compile to. It is never changed once loaded.
type Registry struct {
	Streams  []*record.Stream // by name
	Features []*Feature       // by name
	Services []*Service       // by name
	Series   []*state.Series
	// Enrichments are those of the streams that have one, in their order.
	Enrichments []*Enrichment

	writes  map[*record.Stream][]entityWrites // what an event of each does; see Mapper
	version string
	plan    *state.Plan
}

// entityWrites are the series that one stream keeps of one entity.
type entityWrites struct {
	by     []int // fields that make the entity, in the order of their names
	series []seriesWrite
	log    *logWrite     // nil where no feature needs the events themselves
	ids    *state.Series // nil where the events' identities are not remembered
}

// logWrite is the log that a stream keeps of an entity.
type logWrite struct {
	series  *state.Series
	every   bool // some feature counts every event, and not only filtered ones
	columns []logColumn
}

// logColumn is a column of a log, of a field, a filter or a condition.
type logColumn struct {
	state.Column
	field int        // -1 for an expression
	where *expr.Expr // nil for a field
	// filters says that some feature takes the events for which where is true,
	// so that they are to be kept.
	filters bool
}

// seriesWrite is one series that an event of the stream writes.
type seriesWrite struct {
	series *state.Series
	where  *expr.Expr // nil takes every event
	// condition is what CountHolds counts; nil for none.
	condition *expr.Expr
	field     int                                    // of the measure; -1 for none
	per       int                                    // field whose values are the keys; -1 for none
	key       func(dst []byte, v value.Value) []byte // makes them; nil: they are texts
}

// Feature is one question that can be asked.
type Feature struct {
	Name        string
	Description string
	Owner       string
	Definition  string // in the one-line form
	Stream      *record.Stream
	By          []string // the entity's fields as the definition orders them
	ByTypes     []value.Type
	Kind        aggregate.Function
	Call        aggregate.Call
	Window      window.Window
	Keep        time.Duration   // how far back a question may ask
	Series      []*state.Series // one for each of the kind's measures; the log for exact windows
	Where       string
	Field       string // of the kind; empty for none
	Condition   string // of the kind; empty for none
	// Per is the field for each of whose values there is a value; empty for none.
	Per string

	// Parts are the features that a derived one is computed from, in the order
	// in which Expr takes their values. A derived feature has no stream, kind,
	// call and window of its own; its series are those of its parts, one for
	// each read.
	Parts []*Feature
	Expr  *expr.Expr // over the values of Parts; nil for none
	// Default stands for a null result of Expr.
	Default value.Value
	// Through is set of a feature of the second degree: its keys are those of
	// Through.Set, its series those of both hops, and all else is of the second.
	Through *Through
	// keys are by part the places of its keys among the feature's own, both in
	// the order of their names.
	keys [][]int

	// Columns are those of the log that an exact window looks at.
	Columns Columns

	retained []state.Retained
}

// Through is how a feature of the second degree is had: the members of a set are
// the entities that the second hop is about, all of them together.
type Through struct {
	Set  *Feature // answers with the list of members
	Name string   // of Set where it is a feature of its own; empty for a call
	Each *Feature // what is asked of the members; it is by their field
	Max  int      // how many members are asked about, the first of the list
}

// Columns are the columns of a log that a feature looks at; nil where it needs no
// field, no filter, no condition or no categories.
type Columns struct {
	Field, Filter, Condition, Category *state.Column
}

// Service is a named list of features that is asked for as one.
type Service struct {
	Name     string
	Features []*Feature
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
func (r *Registry) Stream(name string) (*record.Stream, bool) {
	return find(r.Streams, name, func(s *record.Stream) string { return s.Name })
}

// find looks up a name in a list that is sorted by it.
func find[T any](list []T, name string, nameOf func(T) string) (T, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(t T, name string) int {
		switch n := nameOf(t); {
		case n < name:
			return -1
		case n > name:
			return 1
		}
		return 0
	})
	if !ok {
		var none T
		return none, false
	}
	return list[i], true
}

// Topics lists the topics that the registry's streams read, sorted.
func (r *Registry) Topics() []string {
	var topics []string
	for _, s := range r.Streams {
		topics = append(topics, s.Topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}
