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

// combine gives a derived feature the keys, the series and the past of its
// parts.
func (f *Feature) combine() {
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

// entityOf is the text of a part's entity, made of the feature's.
func (f *Feature) entityOf(part int, entity string) string {
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

// derive answers a derived feature by its parts. The value is found where that
// of any part is, and null where the expression cannot be computed. Where a part
// could not be read there is none, whatever the default. It is whole if each part is.
func (f *Feature) derive(a *Answer, r *Reading, at int64, c *Completeness) {
	*a = Answer{Status: NotFound, Exact: true, CompleteSince: state.MinTime}
	a.From, a.To = f.Covers(at, r.now)
	whole := *a // as far as all parts are
	values := make([]value.Value, len(f.Parts))
	var p Answer
	for i, part := range f.Parts {
		r.answer(&p, part, at, c.part(i))
		values[i] = p.Value
		whole.restOn(&p)
		a.Exact = a.Exact && p.Exact
		a.StandardError = max(a.StandardError, p.StandardError)
		a.RelativeError = max(a.RelativeError, p.RelativeError)
		a.Uncertain = max(a.Uncertain, p.Uncertain)
		a.Capped = a.Capped || p.Capped
		switch {
		case a.Status.Unread():
		case p.Status.Unread():
			a.Status, a.Err = p.Status, p.Err
		case p.Status != NotFound:
			a.Status = Present
		}
	}
	if a.Status.Unread() {
		f.unread(a, a.Err, at, r.now)
		return
	}
	// Its error is an overflow: there is no such value.
	a.Value, _ = f.Expr.Clone().Eval(values)
	if a.Value.IsNull() {
		a.Value = f.Default
		if a.Status == Present {
			a.Status = NullValue
		}
	}
	a.restOn(&whole)
}
