package definition

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// maxReads bounds the reads of a derived feature. Equal parts of parts are read once, but each is folded.
const maxReads = 256

// derivedKeys are the keys of a derived feature.
var derivedKeys = []string{"expr", "stream", "by", "default", "description", "owner"}

// featureNamed compiles a feature once; it is nil if something is wrong with it.
func (l *compiler) featureNamed(name string) *features.Feature {
	f, ok := l.compiled[name]
	if !ok {
		l.checkTime()
		l.underWay = append(l.underWay, name)
		f = l.feature(l.features[name])
		l.underWay = l.underWay[:len(l.underWay)-1]
		l.compiled[name] = f
	}
	return f
}

// derived compiles a feature over other features; it is nil if something is wrong with it.
func (l *compiler) derived(n named) *features.Feature {
	before := len(l.findings)
	words := map[string]word{}
	for key, n := range l.keyed(n.node, "derived feature "+strconv.Quote(n.name.text), derivedKeys...) {
		if key == "default" && n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
			words[key] = n.word() // it may be empty
		} else if w, ok := l.scalar(n, key); ok {
			words[key] = w
		}
	}
	w := words["expr"]
	if !w.given() {
		return nil
	}
	f := &features.Feature{Name: n.name.text, Description: words["description"].text, Owner: words["owner"].text}
	if f.Description == "" {
		f.Description = n.comment
	}
	of := &features.Derived{}
	event, ok := l.eventOf(of, words["stream"])
	if !ok {
		return nil
	}
	of.Expr = l.expr(w, func() (*expr.Expr, error) {
		return expr.CompileOver(w.text, &derivedNames{l, of, words["by"]}, event, value.Null)
	})
	if of.Expr == nil {
		return nil
	}
	l.checkEvent(of, w, words["stream"])
	l.checkBy(of, words["by"])
	switch {
	case len(of.Of) == 0 && of.Event != nil:
		l.report(w.location, "the expression names no feature: what depends on the event alone is a field of stream %q with this expr", of.Event.Name)
	case len(of.Of) == 0:
		l.report(w.location, "the expression names no feature and no field of a table")
	case of.Expr.Type() == value.Null:
		l.report(w.location, "the expression is always null")
	}
	if d := words["default"]; d.given() {
		of.Default = l.defaultValue(d, of.Expr.Type())
	}
	of.Combine(f)
	if len(of.Of) > 0 && len(f.By) == 0 {
		in := of.Of[0].Basis.(*features.OfTable) // no other part is without a key
		key := of.Event.Fields[in.Event].Name
		l.report(w.location, "the event in hand alone decides, so nothing says whom to ask about: make its field the key, as in {expr: %s in %s}", key, in.Table.Name)
	}
	if len(f.Series) > maxReads {
		l.report(w.location, "the feature reads %d series through its parts, more than %d", len(f.Series), maxReads)
	}
	if n := f.FanOut(); n > maxFanOut {
		l.report(w.location, "the feature reads up to %d members of lists through its parts, more than %d; lower the max of its parts", n, maxFanOut)
	}
	if len(l.findings) > before {
		return nil
	}
	f.Definition = canonicalDerived(of)
	return f
}

// eventOf finds the stream of the event that a derived feature reads, and its fields; false if there is a finding about the
// stream.
func (l *compiler) eventOf(of *features.Derived, w word) (fields []expr.Variable, ok bool) {
	if !w.given() {
		return nil, true
	}
	if of.Event, ok = l.streams.registry.Stream(w.text); !ok {
		l.report(w.location, "%s", spelling.Unknown("stream", w.text, slices.Collect(maps.Keys(l.streams.written))))
		return nil, false
	}
	l.oneInHand(of.Event, w)
	return of.Event.Variables(), typesKnown(of.Event.Fields)
}

// oneInHand reports a stream of which several events may be in hand at once.
func (l *compiler) oneInHand(s *record.Stream, w word) {
	if s.Each != nil {
		l.report(w.location, "stream %q makes several events of a record, so it is not known which of them is in hand", s.Name)
	}
}

// checkEvent reports a stream of which the expression reads nothing, and parts that read events of different streams.
func (l *compiler) checkEvent(of *features.Derived, w, stream word) {
	if of.Event != nil && len(of.Expr.OfEvent()) == 0 {
		l.report(stream.location, "the expression reads no field of the event, such as %s.%s: leave out stream", expr.EventName, of.Event.Fields[0].Name)
	}
	first, whose := of.Event, "the expression"
	for _, part := range of.Of {
		switch s := part.InHand; {
		case s == nil:
		case first == nil:
			first, whose = s, "feature "+strconv.Quote(part.Name)
		case s != first:
			l.report(w.location, "%s reads the event of stream %q, and feature %q that of stream %q: only one event is being scored",
				whose, first.Name, part.Name, s.Name)
			return
		}
	}
}

// derivedNames finds the parts that the expression of a derived feature names.
type derivedNames struct {
	*compiler
	of *features.Derived
	by word // the key of the table of which fields are named
}

// Feature implements expr.Names.
func (n *derivedNames) Feature(name string) (int, expr.Variable, error) {
	if _, ok := n.features[name]; !ok {
		if _, isTable := n.tables.written[name]; n.tables.lists[name] {
			return 0, expr.Variable{}, errors.New(strconv.Quote(name) + " is a list: ask whether a key is in it, as in KEY in " + name)
		} else if isTable {
			return 0, expr.Variable{}, errors.New(strconv.Quote(name) + " is a table: name one of its fields, as in " + name + ".FIELD")
		}
		return 0, expr.Variable{}, errors.New(spelling.Unknown("feature", name, slices.Collect(maps.Keys(n.features))))
	}
	return n.add(name, func() (*features.Feature, error) {
		if i := slices.Index(n.underWay, name); i >= 0 {
			return nil, cycleError("derived features", append(slices.Clone(n.underWay[i:]), name))
		}
		part := n.featureNamed(name)
		switch {
		case part == nil:
			return nil, expr.ErrReported
		case part.Membership() == aggregate.MembersRequired:
			return nil, errors.New("feature " + strconv.Quote(name) + " answers about the members that a question names and is not allowed in an expression")
		}
		return part, nil
	})
}

// Column implements expr.Names.
func (n *derivedNames) Column(table, field string) (int, expr.Variable, error) {
	return n.add(table+"."+field, func() (*features.Feature, error) { return n.column(table, field, n.by) })
}

// Row implements expr.Names.
func (n *derivedNames) Row(table, key string) (int, expr.Variable, error) {
	return n.row(table, key, func() (*features.Feature, error) { return n.member(table, key) })
}

// RowOfEvent implements expr.Names.
func (n *derivedNames) RowOfEvent(table, field string) (int, expr.Variable, error) {
	return n.row(table, expr.EventName+"."+field, func() (*features.Feature, error) { return n.memberOfEvent(table, n.of.Event, field) })
}

// row adds the part `key in table`.
func (n *derivedNames) row(table, key string, find func() (*features.Feature, error)) (int, expr.Variable, error) {
	if _, isFeature := n.features[table]; isFeature && !n.IsTable(table) {
		_, _, err := n.Feature(table)
		return 0, expr.Variable{}, cmp.Or(err, errors.New("feature "+strconv.Quote(table)+" has one value"+afterIn))
	}
	return n.add(key+" in "+table, find)
}

// IsTable implements expr.Names.
func (n *derivedNames) IsTable(name string) bool {
	_, ok := n.tables.written[name]
	return ok
}

// add adds a part once.
func (n *derivedNames) add(name string, find func() (*features.Feature, error)) (int, expr.Variable, error) {
	i := slices.IndexFunc(n.of.Of, func(p *features.Feature) bool { return p.Name == name })
	if i < 0 {
		part, err := find()
		if err != nil {
			return 0, expr.Variable{}, err
		}
		i = len(n.of.Of)
		n.of.Of = append(n.of.Of, part)
	}
	part := n.of.Of[i]
	v := expr.Variable{Name: name, Type: part.Type(), Scale: part.Scale(), Shape: part.Shape()}
	if part.Per != "" {
		v.Category = part.Stream.Fields[part.Stream.FieldIndex(part.Per)].Type
	}
	return i, v, nil
}

// cycleError returns the error for definitions that depend on themselves, along the path.
func cycleError(what string, path []string) error {
	return errors.New(what + " make a cycle: " + strings.Join(path, " -> "))
}

// defaultValue reads the value that replaces a null of a type.
func (l *compiler) defaultValue(w word, t value.Type) value.Value {
	var v value.Value
	ok := false
	switch n, isNumber := value.ParseNumber([]byte(w.text)); t {
	case value.String:
		v, ok = value.Value{Str: []byte(w.text)}, true
	case value.Bool:
		v, ok = expr.Truth(w.text == "true"), w.text == "true" || w.text == "false"
	case value.Float:
		v.Flt, ok = value.ParseFloat([]byte(w.text))
		ok = ok && isNumber
	case value.Int, value.Decimal, value.Timestamp: // a Timestamp is in milliseconds
		most := uint8(0)
		if t == value.Decimal {
			most = value.MaxScale
		}
		for scale := uint8(0); isNumber && !ok && scale <= most; scale++ {
			num, how := n.Scaled(int(scale))
			v, ok = value.Value{Num: num, Scale: scale}, how == value.Exact
		}
	}
	v.Type = t
	if !ok && t != value.Null {
		l.report(w.location, "default %q must be %s, as the expression is", w.text, expr.WithArticle(t))
	}
	return v
}

// canonicalDerived returns a derived feature on one line, with everything that affects its meaning.
func canonicalDerived(of *features.Derived) string {
	text := "{expr: " + yamlQuote(of.Expr.Text)
	if of.Event != nil {
		text += ", stream: " + of.Event.Name
	}
	for _, part := range of.Of {
		c, ok := part.Basis.(*features.OfTable)
		if ok && c.Field != features.Exists && part.By[0] != c.Table.Rows.Fields[c.Table.Key].Name {
			text += ", by: " + part.By[0]
			break
		}
	}
	if !of.Default.IsNull() {
		val := string(of.Default.AppendText(nil))
		if of.Default.Type == value.String {
			val = yamlQuote(val)
		}
		text += ", default: " + val
	}
	return text + "}"
}

// yamlQuote writes a text as a quoted YAML scalar.
func yamlQuote(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
