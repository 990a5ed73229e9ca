package featuretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/badyaml"
	"github.com/weir-stream/weir/internal/spelling"
)

// Find lists the test files below paths, each a file or a folder.
func Find(paths ...string) (files []string, err error) {
	for _, p := range paths {
		before := len(files)
		err := filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && (definition.IsTest(name) || name == p) {
				files = append(files, name)
			}
			return err
		})
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, fmt.Errorf("%s: %w", e.Path, e.Err) // not that it failed to "lstat"
		}
		if err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, fmt.Errorf("%s: there is no *_test.yaml below it", p)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// file is a file of tests.
type file struct {
	name        string
	definitions []string // paths
	start       int64    // milliseconds: the base of offsets
	defaults    map[string]*yaml.Node
	tables      []tableRow // that each test has
	tests       []test
	findings    definition.Findings
}

type test struct {
	name      string
	line      int
	tables    []tableRow
	events    []event
	questions []ask
}

// event is an event of a test.
type event struct {
	node   *yaml.Node // its location
	stream string     // of its fields; empty for a record of a topic
	topic  string
	fields *yaml.Node // of the stream, or the record's value
	at     int64      // milliseconds; for a record, when it was written
	came   int64
	poison string     // the reason why it must be set aside; empty for none
	entity *yaml.Node // of the question, if the event is in hand: its keys go before what the stream's events have by default
}

// ask is a question with its expectations.
type ask struct {
	node   *yaml.Node
	at     int64
	entity *yaml.Node
	expect *yaml.Node
	event  *event // in hand; nil for none
}

// defaultStart is the base of offsets unless the file sets one.
var defaultStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// read reads a file. The error is definition.Findings if the file can be read.
func read(name string) (*file, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, start: defaultStart, definitions: []string{filepath.Dir(name)}, defaults: map[string]*yaml.Node{}}
	var root, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err = decoder.Decode(&root)
	if err == nil {
		err = decoder.Decode(&next)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		line, why := badyaml.At(data, err)
		return nil, definition.Findings{{File: name, Line: line, Column: 1, Message: "bad YAML: " + why}}
	}
	if len(root.Content) == 0 {
		return nil, definition.Findings{{File: name, Message: "there are no tests in it"}}
	}
	f.repeated(&root)
	f.document(root.Content[0])
	if len(next.Content) > 0 && next.Content[0].Tag != "!!null" {
		f.find(next.Content[0], "a second YAML document: write all tests into one, without ---")
	}
	if len(f.findings) > 0 {
		return nil, f.findings
	}
	return f, nil
}

// repeated finds keys that a mapping has twice, of whose values only one would count, such as the last of two lists of
// tests, and values that contain themselves, given the nodes that a node is in.
func (f *file) repeated(n *yaml.Node, within ...*yaml.Node) {
	within = append(within, n)
	lines := map[string]int{}
	for i, child := range n.Content {
		if child.Kind == yaml.AliasNode && slices.Contains(within, child.Alias) {
			f.find(child, "*%s stands for a value that it is in", child.Value)
		}
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if line, has := lines[child.Value]; has {
				f.find(child, "duplicate key %q; it is already at line %d", child.Value, line)
			}
			lines[child.Value] = child.Line
		}
		f.repeated(child, within...)
	}
}

// list returns the members of a list, which may be empty.
func (f *file) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	if !isNothing(n) {
		f.find(n, "%s: expected a list", what)
	}
	return nil
}

// isNothing reports whether nothing is written in place of a value.
func isNothing(n *yaml.Node) bool { return n.ShortTag() == "!!null" }

// find adds a finding at a node.
func (f *file) find(n *yaml.Node, format string, args ...any) {
	f.findings = append(f.findings, definition.Finding{File: f.name, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

// members calls the function for each member of a mapping, by its name, and resolves aliases and merges.
func (f *file) members(n *yaml.Node, what string, by map[string]func(*yaml.Node)) map[string]bool {
	seen := map[string]bool{}
	known := make([]string, 0, len(by))
	for name := range by {
		known = append(known, name)
	}
	each(n, func(key, value *yaml.Node) {
		if do := by[key.Value]; do != nil {
			do(value)
		} else {
			f.find(key, "%s", spelling.UnknownIn(" of "+what, "key", key.Value, known))
		}
		seen[key.Value] = true
	})
	if resolved(n).Kind != yaml.MappingNode {
		f.find(n, "%s: expected keys with values", what)
	}
	return seen
}

// resolved returns the node that an alias refers to, or the node itself.
func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// each visits the members of a mapping, in their order.
func each(n *yaml.Node, visit func(key, value *yaml.Node)) {
	n = resolved(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		visit(n.Content[i], resolved(n.Content[i+1]))
	}
}

func (f *file) document(n *yaml.Node) {
	var tests *yaml.Node
	f.members(n, "a file of tests", map[string]func(*yaml.Node){
		"definitions": func(n *yaml.Node) {
			var paths []string
			if err := n.Decode(&paths); err != nil || len(paths) == 0 {
				f.find(n, "definitions: expected a list of files or folders")
				return
			}
			f.definitions = nil
			for _, p := range paths {
				if !filepath.IsAbs(p) {
					p = filepath.Join(filepath.Dir(f.name), p)
				}
				f.definitions = append(f.definitions, p)
			}
		},
		"start": func(n *yaml.Node) { f.start = f.moment(n, "start") },
		"defaults": func(n *yaml.Node) {
			if n.Kind != yaml.MappingNode && !isNothing(n) {
				f.find(n, "defaults: expected streams, each with fields of its events")
			}
			each(n, func(key, value *yaml.Node) {
				if value.Kind != yaml.MappingNode && !isNothing(value) {
					f.find(value, "defaults: expected fields with their values, such as {user_id: u1}")
				}
				f.defaults[key.Value] = value
			})
		},
		"tables": func(n *yaml.Node) { f.tables = f.rows(n) },
		"tests":  func(n *yaml.Node) { tests = n },
	})
	if tests == nil || tests.Kind != yaml.SequenceNode || len(tests.Content) == 0 {
		f.find(n, "tests: expected a list of tests")
		return
	}
	names := map[string]bool{}
	for _, t := range tests.Content {
		read := f.test(resolved(t))
		if names[read.name] {
			f.find(t, "there are two tests with the name %q", read.name)
		}
		names[read.name] = true
		f.tests = append(f.tests, read)
	}
}

func (f *file) test(n *yaml.Node) test {
	t := test{line: n.Line}
	seen := f.members(n, "a test", map[string]func(*yaml.Node){
		"name":   func(n *yaml.Node) { t.name = n.Value },
		"tables": func(n *yaml.Node) { t.tables = f.rows(n) },
		"events": func(n *yaml.Node) {
			for _, e := range f.list(n, "events") {
				t.events = append(t.events, f.event(resolved(e)))
			}
		},
		"questions": func(n *yaml.Node) {
			for _, q := range f.list(n, "questions") {
				t.questions = append(t.questions, f.ask(resolved(q)))
			}
		},
	})
	if t.name == "" {
		f.find(n, "the test has no name")
	}
	if !seen["questions"] || len(t.questions) == 0 {
		f.find(n, "the test has no questions")
	}
	return t
}

// event reads {STREAM: {at: …, FIELD: …}}, or {topic: …, value: …, came: …}.
func (f *file) event(n *yaml.Node) event {
	e := event{node: n}
	var came *yaml.Node
	each(n, func(key, value *yaml.Node) {
		switch key.Value {
		case "poison":
			e.poison = value.Value
		case "topic":
			e.topic = value.Value
		case "value":
			e.fields = value
		case "came":
			came = value
		default:
			if e.stream != "" {
				f.find(key, "an event is of one stream: %s or %s", e.stream, key.Value)
			}
			e.stream, e.fields = key.Value, value
		}
	})
	switch {
	case e.fields == nil || e.fields.Kind != yaml.MappingNode && e.stream != "" || (e.stream == "") == (e.topic == ""):
		f.find(n, "expected an event: STREAM: {at: +5m, FIELD: VALUE, …}, or topic: and value: of a record")
	case e.stream != "":
		at := member(e.fields, "at")
		if at == nil {
			f.find(n, "the event has no at: when it happened, such as +5m after the start, or 2026-01-31T10:00:00Z")
			break
		}
		e.at = f.moment(at, "at")
		e.came = e.at
		if came == nil {
			came = member(e.fields, "came")
		}
	case came == nil:
		f.find(n, "the record has no came: when it was written")
	}
	if came != nil {
		e.came = f.moment(came, "came")
	}
	return e
}

// ask reads {at: …, entity: {…}, event: {…}, expect: {…}}.
func (f *file) ask(n *yaml.Node) ask {
	q := ask{node: n}
	seen := f.members(n, "a question", map[string]func(*yaml.Node){
		"at":     func(n *yaml.Node) { q.at = f.moment(n, "at") },
		"entity": func(n *yaml.Node) { q.entity = n },
		"expect": func(n *yaml.Node) { q.expect = n },
		"event":  func(n *yaml.Node) { q.event = f.inHand(n) },
	})
	if q.event != nil {
		q.event.entity = q.entity
		if member(q.event.fields, "at") == nil {
			q.event.at = q.at
		}
	}
	for _, name := range []string{"at", "entity", "expect"} {
		if !seen[name] {
			f.find(n, "the question has no %s", name)
		}
	}
	if q.entity != nil && q.entity.Kind != yaml.MappingNode {
		f.find(q.entity, "entity: expected keys with their values, such as {user_id: u1}")
	}
	if q.expect != nil && (q.expect.Kind != yaml.MappingNode || len(q.expect.Content) == 0) { // it could not fail
		f.find(q.expect, "expect: expected features with their values, such as {user_tx_1h: 3}")
	}
	return q
}

// inHand reads {STREAM: {FIELD: …}}, the event in hand of a question, whose time is by default that of the question.
func (f *file) inHand(n *yaml.Node) *event {
	e := &event{node: n}
	each(n, func(key, value *yaml.Node) { e.stream, e.fields = key.Value, value })
	if len(n.Content) != 2 || e.fields.Kind != yaml.MappingNode {
		f.find(n, "event: expected the event in hand, such as {transaction: {amount: 12.50}}")
		return nil
	}
	if at := member(e.fields, "at"); at != nil {
		e.at = f.moment(at, "at")
	}
	return e
}

// member returns a member of a mapping; nil if there is none.
func member(n *yaml.Node, name string) (found *yaml.Node) {
	each(n, func(key, value *yaml.Node) {
		if key.Value == name {
			found = value
		}
	})
	return found
}

// moment reads a moment, in milliseconds.
func (f *file) moment(n *yaml.Node, what string) int64 {
	ms, err := f.parseMoment(n.Value)
	if err != nil {
		f.find(n, "%s: %v", what, err)
	}
	return ms
}

var errMoment = errors.New("expected a moment: an offset from the start such as +5m or -2d, or RFC 3339 such as 2026-01-31T10:00:00Z")

// parseMoment reads an offset from the start, a date with a time, or a date.
func (f *file) parseMoment(text string) (int64, error) {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli(), nil
		}
	}
	offset, back := strings.CutPrefix(text, "-")
	d, err := window.ParseDuration(strings.TrimPrefix(offset, "+"))
	if err != nil {
		return 0, errMoment
	}
	if back {
		d = -d
	}
	return f.start + d.Milliseconds(), nil
}
