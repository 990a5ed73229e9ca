package materialize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// Column is one column of a training set: a feature, or a field of the stream
// as it is in the event. Behind a feature whose answers may be uncertain stands one
// that says of each value how much greater it may be, as answers do.
type Column struct {
	Name      string
	feature   *features.Feature // nil for a field
	uncertain bool              // not the feature's value, but how much greater it may be
	field     record.Field
	at        int // the field's place in the stream
}

// uncertainSuffix ends the name of a column that says how much greater a value may be.
const uncertainSuffix = "_uncertain"

// columnsOf are a feature's columns.
func columnsOf(f *features.Feature) []Column {
	columns := []Column{{Name: f.Name, feature: f}}
	if f.MayBeUncertain() {
		columns = append(columns, Column{Name: f.Name + uncertainSuffix, feature: f, uncertain: true})
	}
	return columns
}

// Columns finds columns by their names, features before fields. Without names
// they are all features over the stream, in the order of their names. Where a cell
// can hold no list, they are those that do not answer with one.
func Columns(r *features.Registry, stream *record.Stream, names []string, lists bool) ([]Column, error) {
	if stream.ID == nil {
		return nil, fmt.Errorf("stream %s names no id, by which the events of a training set are known; add id: PATH to it", stream.Name)
	}
	var columns []Column
	if len(names) == 0 {
		for _, f := range r.Features {
			if others(f, stream) == nil && (lists || !listed(f)) {
				columns = append(columns, columnsOf(f)...)
			}
		}
	}
	for _, name := range names {
		c, err := column(r, stream, name, lists)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c...)
	}
	known := map[string]bool{IDColumn(stream): true}
	for _, c := range columns {
		switch {
		case known[c.Name] && c.uncertain:
			return nil, fmt.Errorf("column %q is there twice; it is also how much greater the values of feature %q may be: give the other one another name",
				c.Name, c.feature.Name)
		case known[c.Name]:
			return nil, fmt.Errorf("column %q is there twice; the first is always %s, the id", c.Name, IDColumn(stream))
		}
		known[c.Name] = true
	}
	return columns, nil
}

// IDColumn is the name of the first column, that of the events' ids.
func IDColumn(stream *record.Stream) string { return strings.Join(stream.ID, ".") }

// column finds the columns of a name.
func column(r *features.Registry, stream *record.Stream, name string, lists bool) ([]Column, error) {
	if f, ok := r.Feature(name); ok {
		if other := others(f, stream); other != nil {
			return nil, fmt.Errorf("feature %q counts events of stream %s, and these are of %s", name, other.Name, stream.Name)
		}
		if !lists && listed(f) {
			return nil, fmt.Errorf("feature %q answers with a list, which a cell of a CSV cannot hold; write a .parquet", name)
		}
		return columnsOf(f), nil
	}
	var known []string
	for i, f := range stream.Fields {
		if f.Name == name {
			return []Column{{Name: name, field: f, at: i}}, nil
		}
		known = append(known, f.Name)
	}
	for _, f := range r.Features {
		if others(f, stream) == nil {
			known = append(known, f.Name)
		}
	}
	return nil, fmt.Errorf("%s", spelling.UnknownIn(" of stream "+stream.Name, "feature or field", name, known))
}

// typed is the type of the column's values, the scale of decimals, and the
// shape in which it holds them.
func (c *Column) typed() (value.Type, uint8, aggregate.Shape) {
	if c.feature == nil {
		return c.field.Type, c.field.Scale, aggregate.Scalar
	}
	if c.uncertain {
		return value.Int, 0, aggregate.Scalar
	}
	return c.feature.Type(), c.feature.Scale(), c.feature.Shape()
}

// category is the type and the scale of the categories that a feature has values
// by.
func (c *Column) category() (value.Type, uint8) {
	fields := c.feature.Stream.Fields
	of := fields[slices.IndexFunc(fields, func(f record.Field) bool { return f.Name == c.feature.Per })]
	return of.Type, of.Scale
}

// listed says whether a feature answers with a list.
func listed(f *features.Feature) bool {
	return f.Shape() != aggregate.Scalar && f.Shape() != aggregate.Categories
}

// others is a stream on which a feature rests that is not this one; nil for
// none.
func others(f *features.Feature, stream *record.Stream) *record.Stream {
	parts := f.Parts()
	if len(parts) == 0 && f.Stream != stream {
		return f.Stream
	}
	for _, part := range parts {
		if other := others(part, stream); other != nil {
			return other
		}
	}
	return nil
}
