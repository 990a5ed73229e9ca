package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/internal/badyaml"
	"github.com/weir-stream/weir/internal/spelling"
)

// word is a text in the definitions and its location.
type word struct {
	text     string
	location location
	// inner is true if the text is at its location character by character, so that each part of it has its own
	// location.
	inner bool
	call  *call // the call that the text is, if it is within another call; else nil
}

// given reports whether the definitions have the word.
func (w word) given() bool { return w.location.line > 0 }

// at returns the location of a byte of the word's text.
func (w word) at(offset int) location {
	p := w.location
	if w.inner {
		p.column += utf8.RuneCountInString(w.text[:min(max(offset, 0), len(w.text))])
	}
	return p
}

// part returns a substring of the word, with its own location.
func (w word) part(offset int, text string) word {
	return word{text: text, location: w.at(offset), inner: w.inner}
}

// file is one file of definitions.
type file struct {
	name  string
	lines []string
}

// node is a YAML node in its file, or in the body of a macro that was expanded.
type node struct {
	*yaml.Node
	file *file
	from *expansion // nil if the node is as written
}

func (n node) location() location {
	if n.from != nil {
		return n.from.word(n.Node).location
	}
	return location{file: n.file.name, line: n.Line, column: n.Column}
}

// child returns a node in the same file; an alias is resolved.
func (n node) child(c *yaml.Node) node {
	for c.Kind == yaml.AliasNode {
		c = c.Alias
	}
	return node{c, n.file, n.from}
}

// has reports whether the node is a mapping with that key.
func (n node) has(key string) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// word returns the text of a scalar.
func (n node) word() word {
	if n.from != nil {
		return n.from.word(n.Node)
	}
	w := word{text: n.Value, location: n.location()}
	line := []rune(n.file.lines[min(n.Line, len(n.file.lines))-1])
	at := string(line[min(n.Column-1, len(line)):])
	switch {
	case strings.HasPrefix(at, n.Value):
		w.inner = true
	case at != "" && strings.HasPrefix(at[1:], n.Value):
		w.location.column++
		w.inner = true
	}
	return w
}

// entry is a key of a mapping and its value.
type entry struct {
	key     word
	value   node
	comment string // the lines of comment right above the key
}

// reader reads the parts of definitions, and collects findings.
type reader struct {
	findings Findings
	// interrupted returns an error once the time for loading is up.
	interrupted func() error
	// size is that of the expressions compiled so far, and tooLarge is set once it is above maxExpressions.
	size     int
	tooLarge bool
}

// maxExpressions bounds the memory of all compiled expressions: a byte of text and a step of a pattern need up to some
// hundred bytes each.
const maxExpressions = 2 << 20

// checkTime is called at each definition, expression and finding.
func (l *reader) checkTime() {
	if err := l.interrupted(); err != nil {
		panic(interruption{err})
	}
}

// documents reads the YAML documents of a file.
func (l *reader) documents(name string, data []byte) []node {
	f := &file{name: name, lines: strings.Split(string(data), "\n")}
	var nodes []node
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nodes
		}
		if err != nil {
			line, why := badyaml.At(data, err)
			l.report(location{file: name, line: line, column: 1}, "bad YAML: %s", why)
			return nodes
		}
		for _, root := range document.Content {
			nodes = append(nodes, node{Node: &document, file: f}.child(root))
		}
	}
}

// comment returns the comment right above a node, on one line.
func comment(n node) string {
	paragraphs := strings.Split(n.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.Fields(strings.TrimLeft(line, "# "))...)
	}
	return strings.Join(words, " ")
}

// duplicate is the finding for a name that is already taken.
const duplicate = "duplicate %s %q; it is already defined at %s"

// report adds a finding.
func (l *reader) report(p location, format string, args ...any) {
	l.checkTime()
	message := fmt.Sprintf(format, args...)
	if p.macro != "" {
		message += " (in macro " + p.macro + ")"
	}
	l.findings = append(l.findings, Finding{p.file, p.line, p.column, message})
}

// entries returns the entries of a mapping, in the file's order; noun says what a key is.
func (l *reader) entries(n node, what, noun string) []entry {
	if n.Kind != yaml.MappingNode {
		l.report(n.location(), "%s must be a mapping, not %s", what, describe(n))
		return nil
	}
	var entries []entry
	first := map[string]location{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.child(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			l.report(key.location(), "a key must be a name, not %s", describe(key))
			continue
		}
		if p, ok := first[key.Value]; ok {
			l.report(key.location(), duplicate, noun, key.Value, p)
			continue
		}
		first[key.Value] = key.location()
		value := n.child(n.Content[i+1])
		if pieces := l.cut(n, value, i+2, 2); pieces > 0 {
			i += 2 * pieces
			continue
		}
		entries = append(entries, entry{key.word(), value, comment(key)})
	}
	return entries
}

// cut reports a text without quotes that YAML has cut at its commas, because it is within braces or brackets. It returns in
// how many further pieces: keys of the mapping, or members of the list, which are in steps from the next one on.
func (l *reader) cut(within, text node, next, step int) (pieces int) {
	if within.Style&yaml.FlowStyle == 0 || text.Kind != yaml.ScalarNode || text.Style != 0 {
		return 0
	}
	whole := text.Value
	open := func() bool { return strings.Count(whole, "(") > strings.Count(whole, ")") }
	for ; open() && next < len(within.Content); next += step {
		piece := within.Content[next]
		if piece.Kind != yaml.ScalarNode || step == 2 && within.Content[next+1].Tag != "!!null" {
			return 0
		}
		whole += ", " + piece.Value
		pieces++
	}
	if pieces == 0 || open() {
		return 0
	}
	l.report(text.location(), "within braces or brackets YAML ends a text at its comma: quote it, as in %q", whole)
	return pieces
}

// otherKeys are keys that one may look for, with what to write instead where another spelling is not the answer; by the kind of
// what they are in, and the key.
var otherKeys = map[string]string{
	"field type":   "types are those of the stream's fields, and the same in all topics",
	"feature join": noJoin, "stream join": noJoin,
	"feature tz": "the time zone is part of the window, such as calendar day tz Asia/Shanghai",
}

// noJoin says what to do instead of joining events with rows.
const noJoin = "events are joined with rows of a table by enriching them, see docs/tables.md, In aggregations"

// keyed returns the entries of a mapping with known keys, by key.
func (l *reader) keyed(n node, what string, known ...string) map[string]node {
	values := map[string]node{}
	for _, e := range l.entries(n, what, "key") {
		if !slices.Contains(known, e.key.text) {
			kind, _, _ := strings.Cut(what, " ")
			if instead, ok := otherKeys[kind+" "+e.key.text]; ok {
				l.report(e.key.location, "unknown key %q in %s: %s", e.key.text, what, instead)
			} else {
				l.report(e.key.location, "%s", spelling.UnknownIn(" in "+what, "key", e.key.text, known))
			}
			continue
		}
		values[e.key.text] = e.value
	}
	return values
}

// scalar returns the text of a node that must be a scalar.
func (l *reader) scalar(n node, what string) (word, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		l.report(n.location(), "%s must be text, not %s", what, describe(n))
		return word{}, false
	}
	return n.word(), true
}

// list returns the texts of a sequence; a scalar is a list of one.
func (l *reader) list(n node, what string) []word {
	if n.Kind == yaml.ScalarNode {
		w, _ := l.scalar(n, what)
		return []word{w}
	}
	if n.Kind != yaml.SequenceNode {
		l.report(n.location(), "%s must be a list, not %s", what, describe(n))
		return nil
	}
	var words []word
	for i := 0; i < len(n.Content); i++ {
		member := n.child(n.Content[i])
		if pieces := l.cut(n, member, i+1, 1); pieces > 0 {
			i += pieces
			continue
		}
		if w, ok := l.scalar(member, "a member of "+what); ok {
			words = append(words, w)
		}
	}
	return words
}

// describe names the kind of a node.
func describe(n node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null" || n.Value == "":
		return "nothing"
	default:
		return strconv.Quote(n.Value)
	}
}
