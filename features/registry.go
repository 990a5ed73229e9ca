package features

import (
	"cmp"
	"errors"
	"slices"

	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Registry holds compiled definitions. It is immutable once loaded.
type Registry struct {
	Streams  []*record.Stream // by name
	Tables   []*Table         // by name
	Features []*Feature       // by name
	Services []*Service       // by name
	Series   []*state.Series
	// Enrichments are the enrichments of the streams that have one, in the order of the streams.
	Enrichments []*Enrichment
	// Files are the files that the definitions were read from.
	Files Files

	writes  map[*record.Stream][]entityWrites // what an event of each does; see Mapper
	version string
	plan    *state.Plan
	history *state.History // by which the features read generations; nil if there is none
	defined []*Feature     // the features as defined, of a registry over generations
}

// Files are the files of definitions, as they were written.
type Files struct {
	Definitions []File `json:"definitions"` // in the order of reading
	Schemas     []File `json:"schemas"`     // files that options of formats name
}

// File is the text of one file.
type File struct {
	Path string `json:"path"` // where it was read
	Text string `json:"text"`
}

// entityWrites lists the series that a stream keeps of an entity.
type entityWrites struct {
	by     []int // fields that make the entity, sorted by name
	series []seriesWrite
	logs   []*logWrite     // the generations of the log; none where no feature needs the events themselves
	ids    []*state.Series // those of the series of event IDs; none where these are not remembered
}

// logWrite is the log that a stream keeps of an entity.
type logWrite struct {
	series  *state.Series
	every   bool // some feature counts every event, filtered or not
	columns []logColumn
}

// logColumn is a column of a log: a field, a filter or a condition.
type logColumn struct {
	state.Column
	field int        // -1 for an expression
	where *expr.Expr // nil for a field
	// filters means that some feature selects events by where, so these events must be kept.
	filters bool
}

// seriesWrite is one series that events of the stream write.
type seriesWrite struct {
	series *state.Series
	where  *expr.Expr // nil takes every event
	// condition is what CountHolds counts; nil if there is none.
	condition *expr.Expr
	field     int                                    // of the measure; -1 for none
	per       int                                    // field whose values are the keys; -1 for none
	key       func(dst []byte, v value.Value) []byte // makes the keys; nil: they are the values' texts
}

// Service is a named list of features that are asked for together.
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

// Table finds a table by its name.
func (r *Registry) Table(name string) (*Table, bool) {
	return find(r.Tables, name, func(t *Table) string { return t.Name })
}

// FeatureNamed is Feature with an error, which lists the features or guesses the one meant.
func (r *Registry) FeatureNamed(name string) (*Feature, error) {
	return named(r.Features, "feature", name, func(f *Feature) string { return f.Name })
}

// StreamNamed is Stream with an error, which lists the streams or guesses the one meant.
func (r *Registry) StreamNamed(name string) (*record.Stream, error) {
	return named(r.Streams, "stream", name, func(s *record.Stream) string { return s.Name })
}

func named[T any](list []T, what, name string, nameOf func(T) string) (T, error) {
	found, ok := find(list, name, nameOf)
	if ok {
		return found, nil
	}
	var known []string
	for _, t := range list {
		known = append(known, nameOf(t))
	}
	return found, errors.New(spelling.Unknown(what, name, known))
}

// Held says what the keys of a group hold: the fields that name their entities, in the order of an
// entity's values, and the names of the features with state in them, which may be embedded there. Both
// are nil for a group that the definitions do not have.
func (r *Registry) Held(group string) (by, names []string) {
	for _, f := range r.Features {
		for _, s := range f.Series {
			switch group {
			case s.Group:
				by = s.By
			case s.Parent:
				by = s.By[:1]
			default:
				continue
			}
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return by, names
}

// find looks up a name in a list that is sorted by it.
func find[T any](list []T, name string, nameOf func(T) string) (T, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(t T, name string) int { return cmp.Compare(nameOf(t), name) })
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
		topics = append(topics, s.Topics()...)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}
