package features

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// A derived feature is an expression over the answers of others, its parts. It
// has no state: it reads what they read, with them.

// Type is that of the feature's value.
func (f *Feature) Type() value.Type {
	if f.Expr != nil {
		return f.Expr.Type()
	}
	return f.Kind.Spec().ResultOf(f.Call.Type)
}

// Scale is the greatest number of digits behind the point that a decimal in the
// feature's value may have.
func (f *Feature) Scale() uint8 {
	if f.Expr != nil {
		return max(f.Expr.Scale(), f.Default.Scale)
	}
	return f.Call.Scale
}

// Forgets says whether the feature's past is forgotten after a time, which is
// Keep.
func (f *Feature) Forgets() bool {
	return f.Window.Forgets() || f.Through != nil && f.Through.Set.Forgets() || slices.ContainsFunc(f.Parts, (*Feature).Forgets)
}

// Key is the field that holds one of the feature's keys in its events. Of a
// derived feature's parts it is the field with the greatest scale.
func (f *Feature) Key(name string) record.Field {
	if f.Through != nil {
		return f.Through.Set.Key(name)
	}
	if f.Stream != nil {
		if i := f.Stream.FieldIndex(name); i >= 0 {
			return f.Stream.Fields[i]
		}
	}
	var key record.Field
	for _, part := range f.Parts {
		if !slices.Contains(part.By, name) {
			continue
		}
		if k := part.Key(name); key.Name == "" || k.Scale > key.Scale {
			key = k
		}
	}
	return key
}

// Combine gives a derived feature the keys, the series and the past of its
// parts.
func (f *Feature) Combine() {
	var keeps []time.Duration
	for _, part := range f.Parts {
		for i, by := range part.By {
			if !slices.Contains(f.By, by) {
				f.By, f.ByTypes = append(f.By, by), append(f.ByTypes, part.ByTypes[i])
			}
		}
		if part.Forgets() {
			keeps = append(keeps, part.Keep)
		}
		f.Series = append(f.Series, part.Series...)
	}
	if keeps != nil {
		f.Keep = slices.Min(keeps)
	}
	all := slices.Sorted(slices.Values(f.By))
	for _, part := range f.Parts {
		var places []int
		for _, by := range slices.Sorted(slices.Values(part.By)) {
			places = append(places, slices.Index(all, by))
		}
		f.keys = append(f.keys, places)
	}
}

// PartEntity is the text of a part's entity, made of the feature's.
func (f *Feature) PartEntity(part int, entity string) string {
	if len(f.keys[part]) == len(f.By) {
		return entity
	}
	values := state.SplitEntity(nil, entity)
	var b strings.Builder
	for i, place := range f.keys[part] {
		if i > 0 {
			b.WriteByte('|')
		}
		if place < len(values) {
			b.WriteString(values[place])
		}
	}
	return b.String()
}

// FanOut is how many entities more than the one asked about the feature may
// look at.
func (f *Feature) FanOut() int {
	n := 0
	if f.Through != nil {
		n = f.Through.Max
	}
	for _, part := range f.Parts {
		n += part.FanOut()
	}
	return n
}
