package materialize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// Column is one column of a training set: a feature, or a field of the stream
// as it is in the event.
type Column struct {
	Name    string
	feature *features.Feature // nil for a field
	field   int               // in the stream
}

// Columns finds columns by their names, features before fields. Without names
// they are all features over the stream that do not answer with a list, in the
// order of their names.
func Columns(r *features.Registry, stream *features.Stream, names []string) ([]Column, error) {
	if stream.ID == nil {
		return nil, fmt.Errorf("stream %s names no id, by which the events of a training set are known; add id: PATH to it", stream.Name)
	}
	var columns []Column
	if len(names) == 0 {
		for _, f := range r.Features {
			if others(f, stream) == nil && !listed(f) {
				columns = append(columns, Column{Name: f.Name, feature: f})
			}
		}
		return columns, nil
	}
	for _, name := range names {
		c, err := column(r, stream, name)
		if err != nil {
			return nil, err
		}
		if name == IDColumn(stream) || slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name }) {
			return nil, fmt.Errorf("column %q is there twice; the first is always %s, the id", name, IDColumn(stream))
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// IDColumn is the name of the first column, that of the events' ids.
func IDColumn(stream *features.Stream) string { return strings.Join(stream.ID, ".") }

func column(r *features.Registry, stream *features.Stream, name string) (Column, error) {
	if f, ok := r.Feature(name); ok {
		if other := others(f, stream); other != nil {
			return Column{}, fmt.Errorf("feature %q counts events of stream %s, and these are of %s", name, other.Name, stream.Name)
		}
		if listed(f) {
			return Column{}, fmt.Errorf("feature %q answers with a list, which a cell cannot hold", name)
		}
		return Column{Name: name, feature: f}, nil
	}
	var known []string
	for i, f := range stream.Fields {
		if f.Name == name {
			return Column{Name: name, field: i}, nil
		}
		known = append(known, f.Name)
	}
	for _, f := range r.Features {
		if others(f, stream) == nil {
			known = append(known, f.Name)
		}
	}
	return Column{}, fmt.Errorf("%s", features.Unknown("feature or field", name, " of stream "+stream.Name, known))
}

// listed says whether a feature answers with a list.
func listed(f *features.Feature) bool { return f.Kind != nil && f.Kind.Spec().Shape != kinds.Scalar }

// others is a stream on which a feature rests that is not this one; nil for
// none.
func others(f *features.Feature, stream *features.Stream) *features.Stream {
	for _, part := range f.Parts {
		if other := others(part, stream); other != nil {
			return other
		}
	}
	if f.Parts == nil && f.Stream != stream {
		return f.Stream
	}
	return nil
}
