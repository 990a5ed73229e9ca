package definition

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

const (
	defaultKeep = time.Hour
	maxMax      = 1_000_000
)

// compiler compiles the features.
type compiler struct {
	*macros
	streams  *streams
	tables   *tables
	features map[string]named

	// compiled holds the features compiled so far, nil for those with a finding. underWay holds those being compiled,
	// each a part of the one before.
	compiled map[string]*features.Feature
	underWay []string
	series   *features.Compiler
	// byTypes maps a by-field's name to its type, and to the first feature that uses it.
	byTypes map[string]byType
	// wheres are the filters of a stream's features by canonical form, so that each is evaluated
	// once for an event.
	wheres map[*record.Stream]map[string]*expr.Expr
}

type byType struct {
	feature string
	typ     value.Type
}

// feature compiles a feature; it is nil if something is wrong with it.
func (l *compiler) feature(n named) *features.Feature {
	var ok bool
	if n.node, ok = l.expanded(n.node); !ok {
		return nil
	}
	if n.node.has("expr") {
		return l.derived(n)
	}
	d := &writtenFeature{name: n.name, location: n.node.location()}
	f := l.define(d, func(d *writtenFeature) aggregate.Function {
		switch n.node.Kind {
		case yaml.ScalarNode:
			if w, ok := l.scalar(n.node, "a feature"); ok {
				return l.oneLine(d, w)
			}
		case yaml.MappingNode:
			return l.longForm(d, n.node)
		default:
			l.report(n.node.location(), "a feature must be one line or a mapping, not %s", describe(n.node))
		}
		return nil
	})
	if f != nil && !d.description.given() {
		f.Description = n.comment
	}
	return f
}

// define compiles a definition that read fills in. read returns nil if the function is unknown.
func (l *compiler) define(d *writtenFeature, read func(*writtenFeature) aggregate.Function) *features.Feature {
	before := len(l.findings)
	function := read(d)
	if function == nil {
		return nil
	}
	set := l.firstHop(d, function)
	f, in := l.typed(d, function)
	if len(l.findings) > before || !typesKnown(f.Stream.Fields) || d.through.given() && set == nil {
		return nil
	}
	f.Definition = canonical(f)
	if err := l.series.Add(f, in); err != nil {
		l.report(d.location, "%s", err)
		return nil
	}
	if set != nil {
		return l.multiHop(d, set, f)
	}
	return f
}

// function finds a function and its method, nil if there is none. Macros are further names that can be called.
func (l *compiler) function(d *writtenFeature, macros ...string) aggregate.Function {
	name, method := strings.ToLower(d.function.text), strings.ToLower(d.method.text)
	if k, ok := aggregate.Find(name, method); ok {
		return k
	}
	names := functionNames()
	var methods []string
	for _, k := range aggregate.All {
		s := k.Spec()
		if s.Name == name && s.Method != "" {
			methods = append(methods, s.Method)
		}
	}
	switch {
	case !slices.Contains(names, name):
		l.report(d.function.location, "%s", unknownFunction(d.function.text, append(names, macros...)))
	case methods == nil:
		l.report(d.method.location, "%s has no methods", name)
	default:
		l.report(d.method.location, "%s", spelling.UnknownIn(" of "+name, "method", d.method.text, methods))
	}
	return nil
}

// otherNames are what SQL, pandas and stream processors call functions, with what to write here instead: the nearest names
// here may mean something else.
var otherNames = map[string]string{
	"average": "AVG", "mean": "AVG", "total": "SUM",
	"median": "QUANTILE with p=0.5", "percentile": "QUANTILE with p, from 0 to 1", "percentile_cont": "QUANTILE with p, from 0 to 1",
	"percentile_approx": "QUANTILE with p, from 0 to 1", "approx_percentile": "QUANTILE with p, from 0 to 1",
	"std": "STDDEV", "stdev": "STDDEV", "var": "VARIANCE",
	"distinct": "COUNT_DISTINCT", "distinct_count": "COUNT_DISTINCT", "nunique": "COUNT_DISTINCT", "uniq": "COUNT_DISTINCT",
	"unique_count": "COUNT_DISTINCT", "cardinality": "COUNT_DISTINCT",
	"unique": "SET", "collect_set": "SET", "array_agg": "LAST_K", "collect_list": "LAST_K", "last_n": "LAST_K", "first_n": "FIRST_K",
	"first_value": "FIRST", "earliest": "FIRST", "last_value": "LAST", "latest": "LAST", "topk": "TOP_K", "top_n": "TOP_K",
	"percentile_disc": "QUANTILE with p, from 0 to 1", "approx_quantile": "QUANTILE with p, from 0 to 1", "quantiles": "QUANTILE with p, from 0 to 1",
	"countd": "COUNT_DISTINCT", "dcount": "COUNT_DISTINCT", "approx_distinct": "APPROX_COUNT_DISTINCT", "list": "LAST_K", "collect": "LAST_K",
	"string_agg": "LAST_K", "group_concat": "LAST_K", "listagg": "LAST_K", "any_value": "FIRST", "top": "TOP_K", "topn": "TOP_K",
	"earliest_by_offset": "FIRST", "latest_by_offset": "LAST", "ewma": "EXP_DECAY_SUM", "ema": "EXP_DECAY_SUM",
	"most_frequent": "MODE", "bool_or": "COUNT with where='…'",
}

// ifSuffixes are the ends of functions over the events that meet a condition, as in AVG_IF and sumIf.
var ifSuffixes = []string{"_if", "_where", "if"}

// unknownFunction returns the message for a function that does not exist.
func unknownFunction(name string, known []string) string {
	lower := strings.ToLower(name)
	if ours, ok := otherNames[lower]; ok {
		return fmt.Sprintf("unknown function %q: write %s", name, ours)
	}
	for _, suffix := range ifSuffixes {
		if of, cut := strings.CutSuffix(lower, suffix); cut && slices.Contains(known, of) {
			return fmt.Sprintf("unknown function %q: write %s(…, where='…')", name, strings.ToUpper(of))
		}
	}
	return spelling.Unknown("function", name, known)
}

// typed compiles the words of a definition.
func (l *compiler) typed(d *writtenFeature, function aggregate.Function) (*features.Feature, features.Inputs) {
	spec := function.Spec()
	f := &features.Feature{
		Name: d.name.text, Description: d.description.text, Owner: d.owner.text,
		Basis: features.OverStream{}, Function: function, Spec: &spec, Per: d.per.text, Keep: defaultKeep,
	}
	f.Window = l.window(d, function)
	if d.keep.given() {
		f.Keep, _ = l.duration(d.keep)
	}
	l.maximum(d, f, spec)
	stream, ok := l.streams.registry.Stream(d.stream.text)
	if !ok {
		if d.stream.given() {
			l.report(d.stream.location, "%s", spelling.Unknown("stream", d.stream.text, slices.Collect(maps.Keys(l.streams.written))))
		}
		return f, features.Inputs{}
	}
	f.Stream = stream
	l.entity(d, f)
	in := features.Inputs{Field: l.measured(d, f, spec), Per: l.per(d, f)}
	in.Condition = l.parameters(d, f, spec)
	l.enough(d, f)
	if d.where.given() && typesKnown(stream.Fields) {
		in.Where = l.filter(d.where, f)
	}
	return f, in
}

// filter compiles the filter of a feature, and returns what of it is evaluated when an event is mapped; nil for nothing.
func (l *compiler) filter(w word, f *features.Feature) *expr.Expr {
	if !expr.NamesEvent(w.text) {
		e := l.where(f.Stream, w)
		if e != nil {
			f.Where = e.Text
		}
		return e
	}
	l.oneInHand(f.Stream, w)
	var c *expr.Comparison
	with := l.expr(w, func() (with *expr.Expr, err error) {
		if c, err = expr.CompileComparison(w.text, f.Stream.Variables()); err != nil {
			return nil, l.withHint(err, w.text)
		}
		return c.With, nil
	})
	if with == nil {
		return nil
	}
	f.Where, f.InHand = c.Text, f.Stream
	f.Compared = &features.Comparison{Expr: with, Fields: c.Fields}
	if c.Alone == nil {
		return nil
	}
	f.Compared.Alone = c.Alone.Text
	return l.once(f.Stream, c.Alone)
}

// called returns the name of a function for messages.
func called(s aggregate.Spec) string {
	if s.Method == "" {
		return s.Name
	}
	return s.Name + " with method " + s.Method
}

// entity reads the by-fields.
func (l *compiler) entity(d *writtenFeature, f *features.Feature) {
	for _, w := range d.by {
		i := l.fieldNamed(f.Stream, w)
		if i < 0 {
			continue
		}
		field := f.Stream.Fields[i]
		if slices.Contains(f.By, field.Name) {
			l.report(w.location, "field %q appears twice in by", field.Name)
			continue
		}
		f.By = append(f.By, field.Name)
		f.ByTypes = append(f.ByTypes, field.Type)
		switch field.Type {
		case value.Null:
			continue
		case value.Float, value.Location:
			l.report(w.location, "field %q is of type %s and cannot name an entity; use a string, int, bool, decimal or timestamp",
				field.Name, field.Type)
			continue
		}
		first, ok := l.byTypes[field.Name]
		if !ok {
			l.byTypes[field.Name] = byType{f.Name, field.Type}
		} else if first.typ != field.Type {
			l.report(w.location, "field %q is of type %s here and of type %s in feature %q: an entity must have one type in all streams",
				field.Name, field.Type, first.typ, first.feature)
		}
	}
	f.OrderBy()
}

// measured reads the field that a function takes, and returns its index.
func (l *compiler) measured(d *writtenFeature, f *features.Feature, spec aggregate.Spec) int {
	if spec.Types == nil || !d.field.given() {
		switch {
		case d.field.given():
			l.report(d.field.location, "%s takes no field", spec.Name)
		case spec.Types != nil:
			l.report(d.name.location, "feature %q needs field: %s is computed from one", f.Name, spec.Name)
		}
		return -1
	}
	i := l.fieldNamed(f.Stream, d.field)
	if i < 0 {
		return -1
	}
	field := f.Stream.Fields[i]
	if field.Type != value.Null && !slices.Contains(spec.Types, field.Type) {
		var names []string
		for _, t := range spec.Types {
			names = append(names, t.String())
		}
		l.report(d.field.location, "%s needs a field of type %s, and %q is of type %s",
			spec.Name, spelling.Alternatives(names), field.Name, field.Type)
	}
	f.Field, f.Call.Type, f.Call.Scale = field.Name, field.Type, field.Scale
	return i
}

// fieldNamed returns the index of a field of a stream, -1 for none.
func (l *compiler) fieldNamed(s *record.Stream, w word) int {
	i := s.FieldIndex(w.text)
	if i < 0 && w.given() && len(s.Fields) > 0 {
		var names []string
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		message := spelling.UnknownIn(" in stream "+strconv.Quote(s.Name), "field", w.text, names)
		if hint := l.notOfTable(w.text); hint != "" {
			message = fmt.Sprintf("stream %q has no field %q%s", s.Name, w.text, hint)
		}
		l.report(w.location, "%s", message)
	}
	return i
}

// where compiles a filter, once for each canonical form.
func (l *compiler) where(s *record.Stream, w word) *expr.Expr {
	e := l.expr(w, func() (*expr.Expr, error) {
		e, err := expr.Compile(w.text, s.Variables(), value.Bool)
		return e, l.withHint(err, w.text)
	})
	if e == nil {
		return nil
	}
	return l.once(s, e)
}

// withHint adds to the error of a filter what to do if the filter names a table.
func (l *compiler) withHint(err error, text string) error {
	if hint := l.notOfTable(text); err != nil && hint != "" {
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}

// ofTable finds where a table may be: after `in`, with a field of the event in hand before it or not, and before a dot.
var ofTable = regexp.MustCompile(`\b(` + expr.EventName + `\.\w+\s+)?(?:not\s+)?in\s+(?:list\s*\(\s*)?([A-Za-z_]\w*)|\b([A-Za-z_]\w*)\.[A-Za-z_]`)

// notOfTable says what to do if a text about an event names a table.
func (l *compiler) notOfTable(text string) string {
	for _, found := range ofTable.FindAllStringSubmatch(text, -1) {
		table := found[2] + found[3]
		switch _, is := l.tables.written[table]; {
		case is && found[1] != "":
			return fmt.Sprintf("; it would hold for all events of a window or for none: ask it in an expression over the feature, as in {expr: '%sin %s ? FEATURE : 0', stream: STREAM}",
				found[1], table)
		case is:
			return fmt.Sprintf("; an aggregation cannot read table %q: have its rows written into the events, see docs/tables.md, In aggregations", table)
		}
	}
	return ""
}

// once returns the first filter of a stream with the same canonical form.
func (l *compiler) once(s *record.Stream, e *expr.Expr) *expr.Expr {
	if l.wheres[s] == nil {
		l.wheres[s] = map[string]*expr.Expr{}
	}
	if first, ok := l.wheres[s][e.Text]; ok {
		return first
	}
	l.wheres[s][e.Text] = e
	return e
}
