package materialize

import (
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/value"
)

// Column is one column of a training set.
type Column struct {
	Name string
	of   content
	// feature is the feature of an answer, or of statements about its answers.
	feature *features.Feature
	field   record.Field // if the column is a field
	at      int          // index of the field in the stream, or of the column in the spine
}

// content tells what a column's cells hold.
type content uint8

const (
	identity  content = iota // the event's id
	eventTime                // the event's time
	passedOn                 // the spine's value
	ofEvent                  // a field of the event
	answered                 // the feature's value
	status                   // the status of its answer
	capped                   // whether a cap may have reduced it
	errorOf                  // its error
	uncertain                // by how much the true value may exceed it
)

// The suffixes of columns that say how good the values of a feature are.
const (
	statusSuffix    = "_status"
	cappedSuffix    = "_capped"
	errorSuffix     = "_error"
	uncertainSuffix = "_uncertain"
)

// columnsOf returns a feature's columns.
func columnsOf(f *features.Feature, quality bool) []Column {
	columns := []Column{{Name: f.Name, of: answered, feature: f}}
	if !quality {
		return columns
	}
	about := func(suffix string, of content) {
		columns = append(columns, Column{Name: f.Name + suffix, of: of, feature: f})
	}
	about(statusSuffix, status)
	about(cappedSuffix, capped)
	about(errorSuffix, errorOf)
	if f.MayBeUncertain() {
		about(uncertainSuffix, uncertain)
	}
	return columns
}

// TimeColumn is the name of the column with the time of an event, and by default of that with the moments of a spine.
const TimeColumn = "at"

// idColumn returns the column of the events' ids.
func idColumn(stream *record.Stream) Column {
	return Column{Name: strings.Join(stream.ID, "."), of: identity}
}

// typed returns the type of the column's values, the scale of decimals, and the shape of the values.
func (c *Column) typed() (value.Type, uint8, aggregate.Shape) {
	switch c.of {
	case answered:
		return c.feature.Type(), c.feature.Scale(), c.feature.Shape()
	case capped:
		return value.Bool, 0, aggregate.Scalar
	case errorOf:
		return value.Float, 0, aggregate.Scalar
	case uncertain:
		return value.Int, 0, aggregate.Scalar
	case identity, status:
		return value.String, 0, aggregate.Scalar
	case eventTime:
		return value.Timestamp, 0, aggregate.Scalar
	default:
		return c.field.Type, c.field.Scale, aggregate.Scalar
	}
}

// about returns the content of a column other than the value's.
func (c *Column) about(a *query.Answer) value.Value {
	switch c.of {
	case status:
		return value.Value{Type: value.String, Str: []byte(a.Status)}
	case capped:
		return truth(a.Capped)
	case errorOf:
		return value.Value{Type: value.Float, Flt: max(a.StandardError, a.RelativeError, a.FalsePositiveRate)}
	default:
		return value.Value{Type: value.Int, Num: a.Uncertain}
	}
}

func truth(yes bool) value.Value {
	v := value.Value{Type: value.Bool}
	if yes {
		v.Num = 1
	}
	return v
}

// category returns the type and the scale of a feature's categories.
func (c *Column) category() (value.Type, uint8) {
	fields := c.feature.Stream.Fields
	of := fields[slices.IndexFunc(fields, func(f record.Field) bool { return f.Name == c.feature.Per })]
	return of.Type, of.Scale
}

// listed reports whether a feature answers with a list.
func listed(f *features.Feature) bool {
	return f.Shape() != aggregate.Scalar && f.Shape() != aggregate.Categories
}
