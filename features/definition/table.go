package definition

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// tableKeys are the keys of a table, tableNeeds the required ones.
var (
	tableKeys  = []string{"topic", "file", "match", "format", "timestamp", "key", "fields", "max_rows", "max_mib"}
	tableNeeds = []string{"key", "fields"}
)

const (
	defaultMaxRows, maxMaxRows = 1_000_000, 100_000_000
	defaultMaxMiB, maxMaxMiB   = 256, 64 << 10
)

// tableFiles are the ends of the names of files that may hold a table.
var tableFiles = []string{".csv", ".ndjson", ".jsonl", ".avro", ".parquet"}

// tableFile matches these names, and tableObject those of objects.
var (
	tableFile   = regexp.MustCompile(`(\.(csv|ndjson|jsonl)(\.gz|\.zst)?|\.avro|\.parquet)$`)
	tableObject = regexp.MustCompile(`^` + objectScheme + `[\w.-]+/.`)
)

const objectScheme = "s3://"

// deletesName is the name of the field that says that a change of Debezium deletes its row. No definition can name it.
const deletesName = "operation of the change"

// tables compiles the tables and the lists.
type tables struct {
	*streams
	written map[string]named
	lists   map[string]bool // which of them are lists
}

// all compiles all of them.
func (l *tables) all() {
	for _, d := range byName(l.written) {
		compile := l.table
		if l.lists[d.name.text] {
			compile = l.list
		}
		l.registry.Tables = append(l.registry.Tables, compile(d))
	}
}

// listKeys are the keys of a list.
var listKeys = []string{"topic", "type", "max_rows", "max_mib"}

// listTypes are the types that the values of a list may have. Networks are texts.
var listTypes = []string{value.String.String(), value.Int.String(), features.NetworkType}

// list compiles a list: a table whose rows weir list writes.
func (l *tables) list(d named) *features.Table {
	what := "list " + strconv.Quote(d.name.text)
	words := map[string]word{}
	for key, n := range l.keyed(d.node, what, listKeys...) {
		words[key], _ = l.scalar(n, key)
	}
	topic, of := words["topic"], value.String
	if topic.given() {
		l.topic(topic)
	} else if d.node.Kind == yaml.MappingNode {
		l.report(d.name.location, "%s needs topic", what)
	}
	if w := words["type"]; w.given() {
		l.oneOf(w, "type of a list", listTypes)
		if w.text != features.NetworkType {
			of, _ = value.ParseType(w.text)
		}
	}
	t := features.NewList(d.name.text, topic.text, of)
	t.Networks = words["type"].text == features.NetworkType
	t.MaxRows = l.bound(words["max_rows"], "max_rows", defaultMaxRows, maxMaxRows)
	t.MaxBytes = int64(l.bound(words["max_mib"], "max_mib", defaultMaxMiB, maxMaxMiB)) << 20
	return t
}

// table compiles a table. It omits the parts that are wrong, so that the features that read it can still be checked.
func (l *tables) table(d named) *features.Table {
	what := "table " + strconv.Quote(d.name.text)
	t := &features.Table{Name: d.name.text, Key: -1, Deletes: -1, Until: -1, MaxRows: defaultMaxRows, MaxBytes: defaultMaxMiB << 20}
	s := &record.Stream{Name: t.Name, Format: record.JSON, MaxFuture: math.MaxInt64}
	t.Rows = s
	keys := l.keyed(d.node, what, tableKeys...)
	for _, key := range tableNeeds {
		if _, ok := keys[key]; !ok && d.node.Kind == yaml.MappingNode {
			l.report(d.name.location, "%s needs %s", what, key)
		}
	}
	words := map[string]word{}
	for _, key := range []string{"topic", "file", "match", "key", "max_rows", "max_mib"} {
		if n, ok := keys[key]; ok {
			words[key], _ = l.scalar(n, key)
		}
	}
	l.reads = nil
	l.source(d, what, t, words["topic"], words["file"])
	if n, ok := keys["timestamp"]; ok {
		s.Timestamp = l.timestamp(n, false)
	}
	l.keyField(t, words["key"], keys["fields"])
	l.fields(what, s, keys)
	if n, ok := keys["format"]; ok {
		s.Format = l.format(n)
		if words["file"].given() {
			l.report(n.location(), "%s is in a file, whose name says its format: leave out format", what)
		}
	}
	if w := words["match"]; w.given() {
		l.match(s, w)
	}
	t.MaxRows = l.bound(words["max_rows"], "max_rows", defaultMaxRows, maxMaxRows)
	t.MaxBytes = int64(l.bound(words["max_mib"], "max_mib", defaultMaxMiB, maxMaxMiB)) << 20
	if w := words["key"]; w.given() {
		l.checkKey(t, w)
	}
	l.checkFormat(what, d, s)
	if s.Format != nil && s.Format.String() == "debezium" {
		t.Deletes = len(s.Fields)
		s.Fields = append(s.Fields, record.Field{Name: deletesName, Type: value.String, Path: []string{"__op"}, MaxBytes: value.MaxText})
	}
	return t
}

// source reads where the rows are.
func (l *tables) source(d named, what string, t *features.Table, topic, file word) {
	switch {
	case topic.given() && file.given():
		l.report(file.location, "%s has both topic and file; omit one of them", what)
	case topic.given():
		l.topic(topic)
		t.Rows.Topic = topic.text
	case file.given():
		if !tableFile.MatchString(file.text) || strings.Contains(file.text, "://") && !tableObject.MatchString(file.text) {
			l.report(file.location, "bad file %q: it must be the path of a file, or %sBUCKET/KEY, that ends with %s, the first three also with .gz or .zst",
				file.text, objectScheme, spelling.Alternatives(tableFiles))
		}
		if t.Rows.Topic, t.Written, t.File = t.Name, file.text, file.text; !strings.HasPrefix(t.File, objectScheme) {
			t.File = besidePath(file.location.file, t.File)
		}
	case d.node.Kind == yaml.MappingNode:
		l.report(d.name.location, "%s needs topic or file: where its rows are", what)
	}
}

// keyField adds the field of the key, a string, unless the fields include it.
func (l *tables) keyField(t *features.Table, key word, fields node) {
	if !key.given() || fields.Node == nil || fields.has(key.text) {
		return
	}
	if !isName(key.text) {
		l.report(key.location, "bad key %q: "+nameRule+"; to read it at a path, declare it as a field", key.text)
	}
	t.Rows.Fields = append(t.Rows.Fields, record.Field{Name: key.text, Type: value.String, Path: []string{key.text}, MaxBytes: value.MaxText})
	l.reads = append(l.reads, pathRead{[]string{key.text}, value.String, key.location})
}

// checkKey finds the field of the key, which every row must have.
func (l *tables) checkKey(t *features.Table, key word) {
	if t.Key = t.Rows.FieldIndex(key.text); t.Key < 0 {
		return
	}
	f := &t.Rows.Fields[t.Key]
	f.Required = true
	if f.Type == value.Float || f.Type == value.Location {
		l.report(key.location, "field %q is of type %s and cannot be the key; use a string, int, bool, decimal or timestamp", f.Name, f.Type)
	}
}

// bound reads how much a table may have.
func (l *tables) bound(w word, what string, usual, most int) int {
	if !w.given() {
		return usual
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 1 || n > most {
		l.report(w.location, "bad %s %q: it must be a number from 1 to %d", what, w.text, most)
	}
	return n
}

// column finds a field of a table for a derived feature, and returns the part that it is. by is the name of the table's key in
// questions; if it is not given, that of the table's own.
func (l *compiler) column(of, field string, by word) (*features.Feature, error) {
	t, ok := l.streams.registry.Table(of)
	if !ok {
		if _, isFeature := l.features[of]; isFeature {
			return nil, fmt.Errorf("feature %q is no list and has no parts", of)
		}
		return nil, errors.New(spelling.Unknown("table", of, slices.Collect(maps.Keys(l.tables.written))))
	}
	i := t.Rows.FieldIndex(field)
	if i < 0 || i == t.Deletes {
		var known []string
		for j, f := range t.Rows.Fields {
			if j != t.Deletes {
				known = append(known, f.Name)
			}
		}
		return nil, errors.New(spelling.UnknownIn(" of table "+of, "field", field, known))
	}
	if !by.given() && t.Key >= 0 {
		by.text = t.Rows.Fields[t.Key].Name
	}
	return l.ofTable(t, i, by.text)
}

// afterIn says what may stand after `in`.
const afterIn = "; `in` takes a list of literals, a range, or the name of a list, of a table or of a feature with several values"

// tableNamed finds a list or a table by its name after `in`.
func (l *compiler) tableNamed(name string) (*features.Table, error) {
	t, ok := l.streams.registry.Table(name)
	if !ok {
		return nil, errors.New(spelling.Unknown("list", name, slices.Collect(maps.Keys(l.tables.written))) + afterIn)
	}
	if !typesKnown(t.Rows.Fields) || t.Key < 0 {
		return nil, expr.ErrReported
	}
	return t, nil
}

// memberOfEvent is member for the value of a field of the event in hand.
func (l *compiler) memberOfEvent(table string, s *record.Stream, field string) (*features.Feature, error) {
	t, err := l.tableNamed(table)
	if err != nil {
		return nil, err
	}
	i, key := s.FieldIndex(field), &t.Rows.Fields[t.Key]
	if s.Fields[i].Type != key.Type {
		return nil, fmt.Errorf("%s.%s is of type %s, and the key of %s of type %s", expr.EventName, field, s.Fields[i].Type, table, key.Type)
	}
	return features.NewOfEvent(t, s, i), nil
}

// member finds a list or a table of which a derived feature asks whether it has a row for a key.
func (l *compiler) member(table, key string) (*features.Feature, error) {
	t, err := l.tableNamed(table)
	if err != nil {
		return nil, err
	}
	if _, isFeature := l.features[key]; isFeature {
		return nil, fmt.Errorf("%q is a feature, and `in %s` takes the name of a key of questions: of values of features it knows nothing", key, table)
	}
	return l.ofTable(t, features.Exists, key)
}

// ofTable makes the part of a derived feature that looks up a row.
func (l *compiler) ofTable(t *features.Table, field int, by string) (*features.Feature, error) {
	if !typesKnown(t.Rows.Fields) || t.Key < 0 {
		return nil, expr.ErrReported
	}
	part, key := features.NewOfTable(t, field, by), &t.Rows.Fields[t.Key]
	if first, ok := l.byTypes[by]; !ok {
		l.byTypes[by] = byType{part.Name, key.Type}
	} else if first.typ != key.Type {
		return nil, fmt.Errorf("%q is of type %s in feature %q, and the key of %s is of type %s: an entity must have one type everywhere",
			by, first.typ, first.feature, t.Name, key.Type)
	}
	return part, nil
}

// checkBy reports a by that no table needs, or that several would.
func (l *compiler) checkBy(of *features.Derived, by word) {
	if !by.given() {
		return
	}
	if !isName(by.text) {
		l.report(by.location, "bad by %q: "+nameRule, by.text)
	}
	switch tables := ownTables(of); len(tables) {
	case 1:
	case 0:
		l.report(by.location, "by names the key of a table, and the expression reads no field of one, such as merchant.category: leave out by")
	default:
		l.report(by.location, "by names the key of one table, and the expression reads %s and %s: make a feature of a field of each, and an expression of those",
			tables[0].Name, tables[1].Name)
	}
}

// ownTables returns the tables of which the expression itself reads fields.
func ownTables(of *features.Derived) (list []*features.Table) {
	for _, part := range of.Of {
		if c, ok := part.Basis.(*features.OfTable); ok && c.Field != features.Exists && !slices.Contains(list, c.Table) {
			list = append(list, c.Table)
		}
	}
	return list
}
