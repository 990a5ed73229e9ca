package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// derived computes a feature from the model's answers for its parts.
type derived struct {
	*features.Derived
	by   []string       // sorted
	in   *record.Stream // of the event in hand; nil for none
	expr *expr.Expr
}

// newDerived compiles the expression as if the parts, and the fields of the event in hand under names of their own, were fields
// of an event. So are the fields of rows, and whether there is a row.
func newDerived(f *features.Feature, of *features.Derived) *derived {
	var fields []expr.Variable
	text := of.Expr.Text
	for i, part := range of.Of {
		name := part.Name
		if _, ok := part.Basis.(*features.OfTable); ok {
			name = fmt.Sprint("row_", i)
			text = regexp.MustCompile(`(^|[^.\w])`+regexp.QuoteMeta(part.Name)+`\b`).ReplaceAllString(text, "${1}"+name)
		}
		fields = append(fields, expr.Variable{Name: name, Type: part.Type()})
	}
	return &derived{of, f.By, f.InHand, compileInHand(text, fields, of.Event, value.Null)}
}

// entityOf returns the entity of a part.
func (d *derived) entityOf(part *features.Feature, entity string) string {
	var own []string
	texts := state.SplitEntity(nil, entity)
	for _, name := range part.By {
		own = append(own, texts[slices.Index(d.by, name)])
	}
	return strings.Join(own, "|")
}

func (d *derived) answer(m *Model, entity string, at int64) aggregate.Result {
	var r aggregate.Result
	var values []value.Value
	lacks := false // a cap has left no value of a part
	for _, part := range d.Of {
		p := m.Answer(part, d.entityOf(part, entity), at)
		if !p.Found && part.Spec != nil {
			p.Value = part.Spec.Neutral
		}
		values = append(values, p.Value)
		lacks = lacks || p.Capped && p.Value.IsNull()
		r.Found = r.Found || p.Found
		r.Capped = r.Capped || p.Capped
		r.Uncertain = max(r.Uncertain, p.Uncertain)
		r.RelativeError = max(r.RelativeError, p.RelativeError)
	}
	if d.in != nil && !m.has(d.in) {
		return aggregate.Result{}
	}
	if lacks {
		return r
	}
	if d.Event != nil {
		values = append(values, m.InHand.Values...)
	}
	r.Value, _ = d.expr.Eval(values)
	switch {
	case d.expr.Beyond():
		r.Capped = true
	case r.Value.IsNull():
		r.Value = d.Default
	}
	return r
}

// entitiesOf returns the entities of those parts that have all keys of a derived feature.
func (m *Model) entitiesOf(f *features.Feature) []string {
	all := map[string]bool{}
	for _, part := range f.Parts() {
		if len(part.By) < len(f.By) {
			continue
		}
		for _, entity := range m.Entities(part) {
			all[entity] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
