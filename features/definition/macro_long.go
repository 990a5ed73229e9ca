package definition

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/internal/spelling"
)

// expansion is the use of a macro whose body is a mapping, of a feature in the long form or of a
// derived one:
//
//	macros:
//	  M_PAID(user, state):
//	    {function: sum, stream: transaction, field: amount, by: [user], window: 7d, where: status == state}
//	  M_SHARE(part, all): {expr: part / all, default: 0}
//
// Arguments replace parameters in the values, not in the keys, as in the one-line form. Such a
// macro is used like any other; options given at the use must not be in the body too.
type expansion struct {
	within location // of the use
	// words are the scalars that the use changes or adds; they have their own locations.
	words map[*yaml.Node]word
}

// word returns the text of a scalar of the expansion, and the location of any node.
func (x *expansion) word(n *yaml.Node) word {
	if w, ok := x.words[n]; ok {
		return w
	}
	return word{text: n.Value, location: x.within}
}

// maxBodyDepth is deeper than any feature nests.
const maxBodyDepth = 4

// maxBodyValues is more than any feature has; each use of a macro copies them.
const maxBodyValues = 256

// tooLarge reports whether a node has more nodes than are left, each alias with all that it names.
func tooLarge(n node, left *int) bool {
	if *left--; *left < 0 {
		return true
	}
	return slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return tooLarge(n.child(c), left) })
}

// fill returns a copy of a macro's body with its names replaced.
func (x *expansion) fill(body node, by func(name string) (word, bool)) *yaml.Node {
	filled := *body.Node
	filled.Content = nil
	for i := 0; i+1 < len(body.Content); i += 2 {
		key := body.child(body.Content[i])
		value := body.child(body.Content[i+1])
		if !isProse(key.Value) {
			value.Node = x.replace(value, by, acceptsExpression(key.Value), maxBodyDepth)
		}
		filled.Content = append(filled.Content, key.Node, value.Node)
	}
	return &filled
}

// replace returns a copy of a value with the names in its scalars replaced, except in keys of mappings.
func (x *expansion) replace(n node, by func(name string) (word, bool), expression bool, depth int) *yaml.Node {
	if depth == 0 {
		return n.Node
	}
	c := *n.Node
	if n.Kind == yaml.ScalarNode {
		if w := (word{text: n.Value, location: x.within}).replace(by, expression); w.text != n.Value || w.location != x.within {
			c.Value, c.Tag = w.text, "!!str"
			x.words[&c] = w
		}
		return &c
	}
	c.Content = slices.Clone(n.Content)
	for i := range c.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			c.Content[i] = x.replace(n.child(c.Content[i]), by, expression, depth-1)
		}
	}
	return &c
}

// longMacro checks a body that is a mapping; false if it reported a finding.
func (l *macros) longMacro(m *macro, body node) bool {
	before := len(l.findings)
	keys, needs := longFormKeys(), longFormNeeds
	if body.has("expr") {
		keys, needs = derivedKeys, nil
	}
	l.keyed(body, "macro "+m.name.text, keys...)
	for _, key := range needs {
		if !body.has(key) {
			l.report(m.name.location, "macro %s needs %s", m.name.text, key)
		}
	}
	if tooLarge(body, new(int(maxBodyValues))) {
		l.report(m.name.location, "macro %s has more than %d keys and values, those of aliases included", m.name.text, maxBodyValues)
	}
	return len(l.findings) == before
}

// computes reports whether a body that is a mapping names a function, if it needs one.
func (l *macros) computes(m *macro) bool {
	for i := 0; i+1 < len(m.long.Content); i += 2 {
		if m.long.child(m.long.Content[i]).Value != "function" {
			continue
		}
		f, ok := l.scalar(m.long.child(m.long.Content[i+1]), "function")
		if !ok {
			return false
		}
		called, isMacro := l.defined[f.text]
		switch {
		case slices.Contains(m.parameters, f.text), slices.Contains(functionNames(), strings.ToLower(f.text)):
		case isMacro:
			l.report(f.location, "%s is a macro, which is called in one line: write %s: %s", f.text, m.header(), called.header())
			return false
		default:
			l.report(f.location, "%s", unknownFunction(f.text, functionNames()))
			return false
		}
	}
	return true
}

// expanded returns the mapping of a definition that uses a macro of this form, or else the definition itself; false if
// it reported a finding.
func (l *macros) expanded(n node) (node, bool) {
	if n.Kind != yaml.ScalarNode {
		return n, true
	}
	c, err := parseCall(n.word())
	if err != nil || !l.isLong(c) {
		return n, true
	}
	c, ok := l.expand(c)
	if !ok {
		return n, false
	}
	m := l.defined[c.function.text]
	within, by := m.arguments(c)
	x := &expansion{within: within, words: map[*yaml.Node]word{}}
	filled := x.fill(m.long, by)
	if !l.addOptions(x, filled, m, c) {
		return n, false
	}
	for _, w := range x.words {
		if !l.bounded(w, c) {
			return n, false
		}
	}
	return node{Node: filled, file: n.file, from: x}, true
}

// isLong reports whether a call ends at a macro whose body is a mapping.
func (l *macros) isLong(c call) bool {
	for m, ok := l.defined[c.function.text]; ok && !m.broken; m, ok = l.defined[m.body.function.text] {
		if m.long.Node != nil {
			return true
		}
	}
	return false
}

// addOptions adds the options of a use to the macro's body; false if it reported a finding.
func (l *macros) addOptions(x *expansion, filled *yaml.Node, m *macro, c call) bool {
	known := slices.Collect(maps.Keys(new(writtenFeature).options()))
	if m.long.has("expr") {
		known = slices.DeleteFunc(slices.Clone(derivedKeys), func(key string) bool { return key == "expr" })
	}
	before := len(l.findings)
	for _, o := range c.options {
		switch {
		case !slices.Contains(known, o.name.text):
			l.report(o.name.location, "%s", spelling.Unknown("option", o.name.text, known))
		case (node{Node: filled}).has(o.name.text):
			l.report(o.name.location, "option %q is given twice", o.name.text)
		default:
			for _, w := range []word{o.name, o.value} {
				n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: w.text}
				x.words[n] = w
				filled.Content = append(filled.Content, n)
			}
		}
	}
	return len(l.findings) == before
}
