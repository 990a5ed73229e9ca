package definition

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// per reads the field by whose values the answer is split, and returns its index, -1 for none.
func (l *compiler) per(d *writtenFeature, f *features.Feature) int {
	if !d.per.given() {
		return -1
	}
	switch spec := *f.Spec; {
	case spec.Shape != aggregate.Scalar:
		l.report(d.per.location, "per does not apply to %s, which answers with a list; omit per", called(spec))
	case spec.Members == aggregate.MembersRequired:
		l.report(d.per.location, "per does not apply to %s, which answers about members; omit per", called(spec))
	}
	i := l.fieldNamed(f.Stream, d.per)
	if i < 0 {
		return -1
	}
	if t := f.Stream.Fields[i].Type; t == value.Float || t == value.Location {
		l.report(d.per.location, "field %q is of type %s and cannot name a category; use a string, int, bool, decimal or timestamp", f.Per, t)
	}
	return i
}

// fromLog describes a function over a field of a type, per category or over a lifetime, that is answered from the log
// with any window. It is empty if the function has tiles.
func fromLog(function aggregate.Function, field value.Type, per, lifetime bool) string {
	spec := function.Spec()
	tiled, ok := function.(aggregate.Mergeable)
	switch {
	case !ok:
		return spec.Name
	case slices.Contains(spec.LogTypes, field):
		return spec.Name + " of a " + field.String()
	case spec.TilesAreUnits && lifetime:
		return spec.Name + " over a lifetime"
	case !per:
		return ""
	}
	// State is split by the keys of one field, and only if it has tiles.
	_, keyed := function.(aggregate.Keyed)
	if keyed || tiled.Measures(aggregate.Call{Type: field})[0].Layout().Exact() {
		return called(spec) + " per category"
	}
	return ""
}
