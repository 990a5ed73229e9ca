package features

import (
	"strings"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// OverStream is the basis of a feature that aggregates the events of a stream.
type OverStream struct{}

// LogColumns are the columns of a log that a feature reads; nil for what it does not need.
type LogColumns struct {
	Field, Filter, Condition, Category *state.Column
}

// Comparison is the part of a filter that is evaluated when a question is answered: for each event of the log, beside the
// event in hand. The log has the fields that it reads. Both events have their texts as state keeps them.
type Comparison struct {
	Expr    *expr.Expr
	Fields  []int           // of the stream, in the order in which Expr takes their values
	Columns []*state.Column // in the order of Fields
	Alone   string          // the rest of the filter, evaluated when an event is mapped; empty for none
}

// Mapped returns the filter that is evaluated when an event is mapped; empty for none.
func (f *Feature) Mapped() string {
	if f.Compared != nil {
		return f.Compared.Alone
	}
	return f.Where
}

// With adds the columns of a feature that takes the same events, so that a record is read once for both. ok is false,
// and nothing is added, if the features differ in their filter or need different columns for the same purpose.
func (c *LogColumns) With(other *LogColumns) (ok bool) {
	with, ok := *c, equalColumns(c.Filter, other.Filter)
	for _, pair := range [...]struct {
		to   **state.Column
		from *state.Column
	}{{&with.Field, other.Field}, {&with.Condition, other.Condition}, {&with.Category, other.Category}} {
		if *pair.to == nil {
			*pair.to = pair.from
		}
		ok = ok && (pair.from == nil || equalColumns(*pair.to, pair.from))
	}
	if ok {
		*c = with
	}
	return ok
}

func equalColumns(a, b *state.Column) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Parts returns none.
func (OverStream) Parts() []*Feature { return nil }

func (OverStream) valueType(f *Feature) value.Type { return f.Spec.ResultOf(f.Call.Type) }
func (OverStream) scale(f *Feature) uint8          { return f.Call.Scale }
func (OverStream) meaning(f *Feature) string {
	of := f.Field
	if of == "" {
		of = f.Stream.Name + " events"
	}
	meaning := f.Spec.Name + " of " + of + " for each " + strings.Join(f.By, " and ")
	if f.Per != "" {
		meaning += ", split by " + f.Per
	}
	if f.Compared != nil {
		meaning += ", compared with the event in hand"
	}
	return meaning
}

func (OverStream) forgets(f *Feature) bool { return f.Window.Forgets() }
func (OverStream) fanOut() int             { return 0 }

func (OverStream) shape(f *Feature) aggregate.Shape {
	if f.Per != "" {
		return aggregate.Categories
	}
	return f.Spec.Shape
}

func (OverStream) membership(f *Feature) aggregate.Membership {
	if f.Per != "" {
		return aggregate.NoMembers
	}
	return f.Spec.Members
}

func (OverStream) key(f *Feature, name string) record.Field {
	return f.Stream.Fields[f.Stream.FieldIndex(name)]
}

func (OverStream) askedAbout(asked *Feature, members []value.Value) {
	field := asked.Stream.FieldIndex(asked.Field)
	asked.Call.Members = make([]value.Value, len(members))
	for i, v := range members {
		asked.Call.Members[i] = asked.Stream.Kept(field, v)
	}
}

func (OverStream) retain(f *Feature) (list []state.Retained) {
	keep := f.reach()
	need := func(s *state.Series, key string) {
		for _, topic := range f.Stream.Topics() {
			r := state.Retained{Key: key, Topic: topic, Retention: state.Retention{Keep: keep}, Tile: s.Tile, Cut: s.Cut}
			if s.Layout().Noteless() {
				r.Max = f.Call.Max
			}
			list = append(list, r)
		}
	}
	for _, s := range f.Series {
		if !f.Window.Exact {
			need(s, seriesKey(f.Stream, s))
			continue
		}
		if f.Columns.Field != nil {
			need(s, columnKey(f.Stream, s, *f.Columns.Field, f.Field))
		}
		if f.Columns.Category != nil {
			need(s, columnKey(f.Stream, s, *f.Columns.Category, f.Per))
		}
		if f.Columns.Condition != nil {
			need(s, columnKey(f.Stream, s, *f.Columns.Condition, f.Condition))
		}
		if f.Columns.Filter != nil {
			need(s, columnKey(f.Stream, s, *f.Columns.Filter, f.Mapped())+filtered)
		}
		if f.Compared != nil {
			for i, c := range f.Compared.Columns {
				need(s, columnKey(f.Stream, s, *c, f.Stream.Fields[f.Compared.Fields[i]].Name))
			}
		}
		if f.Columns.Filter == nil || f.Window.ByEvents() {
			need(s, seriesKey(f.Stream, s))
		}
	}
	return list
}

// IsQuotient reports whether the value is a quotient of two terms with state of their own, of which one may be complete for
// longer than the other: an average or a ratio in tiles, of which a bound may have dropped more of one term; or a ratio whose
// condition is a column of a log, which other features may have needed for longer.
func (f *Feature) IsQuotient() bool {
	function, ok := f.Function.(aggregate.Mergeable)
	return ok && len(function.Measures(f.Call)) > 1 && (!f.Window.Exact || f.Condition != "")
}

// BeforeCurrent reports whether the feature is answered as of before the event in hand, which is being scored: whether an
// entity had met the event's value. A window that excludes the event needs to have it.
func (f *Feature) BeforeCurrent() bool {
	if hop, ok := f.Basis.(*MultiHop); ok {
		return hop.Each.BeforeCurrent()
	}
	return f.Membership() == aggregate.MembersRequired && f.Call.N == aggregate.CurrentLeftOut && f.Window.Exclude == window.ExcludeNothing
}

// Own returns the event's value of the feature's field, the member that the event's row asks about; null if the event
// lacks it.
func (f *Feature) Own(e *record.Event) value.Value { return e.Values[e.Stream.FieldIndex(f.Field)] }
