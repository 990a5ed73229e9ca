package definition

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/spelling"
)

// macro is a feature with parameters, in the one-line form or another (see expansion):
//
//	macros:
//	  M_DEVICES(user, device): COUNT_DISTINCT(1d, transaction, user, device)
//	features:
//	  devices: M_DEVICES(user_id, device_id)
//
// Where a parameter occurs as a whole word in an argument or an option's value, the call's argument
// replaces it. In a condition this happens outside of quotes, in brackets if the argument is more
// than a name or a number; a description and an owner stay unchanged. The use of a macro may add
// options. A macro may use another one, and a call as an argument may call a macro.
type macro struct {
	name       word
	parameters []string
	body       call // of the one-line form
	long       node // a body that is a mapping; without a Node for none
	broken     bool // a finding says why
}

// header returns the macro's name with its parameters.
func (m *macro) header() string {
	return m.name.text + "(" + strings.Join(m.parameters, ", ") + ")"
}

// macros are the macros of all files.
type macros struct {
	*reader
	defined map[string]*macro
}

// macro reads a macro's definition.
func (l *macros) macro(e entry) {
	m, ok := l.macroHeader(e.key)
	if !ok {
		return
	}
	if first, ok := l.defined[m.name.text]; ok {
		l.report(m.name.location, duplicate, "macro", m.name.text, first.name.location)
		return
	}
	if slices.Contains(functionNames(), strings.ToLower(m.name.text)) {
		l.report(m.name.location, "macro %q has the name of a function", m.name.text)
	}
	l.defined[m.name.text] = m
	m.broken = true
	used := map[string]bool{}
	use := func(name string) (word, bool) {
		used[name] = true
		return word{}, false
	}
	switch e.value.Kind {
	case yaml.ScalarNode:
		w, ok := l.scalar(e.value, "a macro")
		if !ok {
			return
		}
		if m.body, ok = l.parse(w); !ok {
			return
		}
		m.body.replace(use)
	case yaml.MappingNode:
		if !l.longMacro(m, e.value) {
			return
		}
		m.long = e.value
		new(expansion).fill(m.long, use)
	default:
		l.report(e.value.location(), "a macro must be one line or a mapping, not %s", describe(e.value))
		return
	}
	m.broken = false
	for _, p := range m.parameters {
		if !used[p] {
			l.report(m.name.location, "parameter %q of macro %s is not used", p, m.name.text)
		}
	}
}

// macroHeader reads NAME(parameter, …).
func (l *macros) macroHeader(key word) (*macro, bool) {
	s := &scanner{word: key}
	m := &macro{name: s.bare()}
	wrong := func() (*macro, bool) {
		l.report(key.location, "a macro is NAME(parameter, …), not %q", key.text)
		return nil, false
	}
	if !isName(m.name.text) || !s.accept('(') {
		return wrong()
	}
	for {
		p := s.bare()
		if !isName(p.text) {
			return wrong()
		}
		if slices.Contains(m.parameters, p.text) {
			l.report(p.location, "parameter %q of macro %s is defined twice", p.text, m.name.text)
			return nil, false
		}
		m.parameters = append(m.parameters, p.text)
		if s.accept(')') {
			break
		}
		if !s.accept(',') {
			return wrong()
		}
	}
	if s.space(); s.next < len(key.text) {
		return wrong()
	}
	return m, true
}

// functionNames returns the functions that one-line forms may call.
func functionNames() []string {
	var names []string
	for _, k := range aggregate.All {
		names = append(names, k.Spec().Name)
	}
	names = slices.Compact(names)
	for _, name := range throughNames() {
		names = append(names, flat+name)
	}
	return names
}

// checkMacros reports macros that call something unknown, or themselves.
func (l *macros) checkMacros() {
	for _, name := range slices.Sorted(maps.Keys(l.defined)) {
		var path []string
		broken := false
		for m := l.defined[name]; m != nil; m = l.defined[m.body.function.text] {
			if i := slices.Index(path, m.name.text); i >= 0 {
				last := l.defined[path[len(path)-1]]
				l.report(last.body.function.location, "%s", cycleError("macros", append(path[i:], m.name.text)))
				broken = true
				break
			}
			path = append(path, m.name.text)
			broken = m.broken
			if m.long.Node != nil {
				broken = broken || !l.computes(m)
				break
			}
			broken = broken || !l.callable(m.body)
			for _, inner := range m.body.calls() {
				broken = broken || !l.callable(*inner)
			}
			if broken {
				break
			}
		}
		for _, name := range path {
			l.defined[name].broken = l.defined[name].broken || broken
		}
	}
}

// callable reports whether a call in a macro's body calls a function, or a macro with as many parameters.
func (l *macros) callable(c call) bool {
	f := c.function
	if called, ok := l.defined[f.text]; ok {
		return l.fits(called, c)
	}
	if slices.Contains(functionNames(), strings.ToLower(f.text)) {
		return true
	}
	l.report(f.location, "%s", unknownFunction(f.text, append(functionNames(), slices.Collect(maps.Keys(l.defined))...)))
	return false
}

// fits reports whether a call has as many arguments as the macro has parameters.
func (l *macros) fits(m *macro, c call) bool {
	if len(c.arguments) == len(m.parameters) {
		return true
	}
	l.report(c.function.location, "macro %s takes %s, not %d: %s", m.name.text,
		spelling.Counted(len(m.parameters), "argument"), len(c.arguments), m.header())
	return false
}

// expand replaces calls of macros by their bodies, down to one that is a mapping; false if it
// reported a finding.
func (l *macros) expand(c call) (call, bool) {
	for m, ok := l.defined[c.function.text]; ok; m, ok = l.defined[c.function.text] {
		if m.broken || !l.fits(m, c) {
			return c, false
		}
		if m.long.Node != nil {
			break
		}
		c = m.apply(c)
		for _, inner := range c.calls() {
			if len(inner.calls()) > 0 {
				l.report(c.function.location, tooDeep)
				return c, false
			}
		}
		for _, w := range c.words() {
			if !l.bounded(*w, c) {
				return c, false
			}
		}
	}
	return c, true
}

// maxExpansion bounds a word in a macro's expansion, in bytes.
const maxExpansion = 4096

// bounded reports whether a word of an expansion is short enough.
func (l *macros) bounded(w word, c call) bool {
	if len(w.text) > maxExpansion {
		l.report(c.function.location, "the expansion is longer than %d bytes", maxExpansion)
		return false
	}
	return true
}

// arguments returns where a macro is called, and the words that the call passes for its parameters.
func (m *macro) arguments(c call) (within location, by func(name string) (word, bool)) {
	within = c.function.location
	if within.macro != "" {
		within.macro += " -> "
	}
	within.macro += m.name.text
	return within, func(name string) (word, bool) {
		i := slices.Index(m.parameters, name)
		if i < 0 {
			return word{}, false
		}
		argument := c.arguments[i].replace(func(string) (word, bool) { return word{}, false }, false)
		for _, w := range argument.words() {
			w.location.macro = within.macro
		}
		return argument, true
	}
}

// apply returns the body of the macro for a call. Its words are located at the call, except those that are arguments.
func (m *macro) apply(c call) call {
	within, by := m.arguments(c)
	body := m.body.replace(by)
	body.function.location, body.function.inner = within, false
	for _, w := range body.words() {
		if w.location.macro == "" {
			w.location, w.inner = within, false
		}
	}
	body.options = append(body.options, c.options...)
	return body
}

// words returns the arguments of a call and the names and values of its options, including those of nested calls.
func (c *call) words() []*word {
	var words []*word
	for i := range c.arguments {
		words = append(words, c.arguments[i].words()...)
	}
	for i := range c.options {
		words = append(words, &c.options[i].name)
		words = append(words, c.options[i].value.words()...)
	}
	return words
}

// words returns the word itself and, if it is a call, its function's name and its words.
func (w *word) words() []*word {
	words := []*word{w}
	if w.call != nil {
		words = append(append(words, &w.call.function), w.call.words()...)
	}
	return words
}

// calls returns the nested calls of a call.
func (c *call) calls() []*call {
	var calls []*call
	for i := range c.arguments {
		if inner := c.arguments[i].call; inner != nil {
			calls = append(calls, inner)
		}
	}
	for i := range c.options {
		if inner := c.options[i].value.call; inner != nil {
			calls = append(calls, inner)
		}
	}
	return calls
}

// replace returns the call with its names replaced.
func (c *call) replace(by func(name string) (word, bool)) call {
	r := call{function: c.function}
	for _, a := range c.arguments {
		r.arguments = append(r.arguments, a.replace(by, false))
	}
	for _, o := range c.options {
		if !isProse(o.name.text) {
			o.value = o.value.replace(by, acceptsExpression(o.name.text))
		}
		r.options = append(r.options, o)
	}
	return r
}

// isProse reports whether an option's value is text for readers only.
func isProse(option string) bool { return option == "description" || option == "owner" }

// acceptsExpression reports whether an option's value is an expression.
func acceptsExpression(option string) bool {
	return option == "where" || option == "expr" || slices.ContainsFunc(aggregate.All, func(k aggregate.Function) bool {
		return slices.ContainsFunc(k.Spec().Parameters, func(p aggregate.Parameter) bool {
			return p.Name == option && p.Type == aggregate.Condition
		})
	})
}

// replace returns a word or an expression with its names replaced.
func (w word) replace(by func(name string) (word, bool), expression bool) word {
	if whole, ok := by(w.text); ok {
		return whole
	}
	if w.call != nil {
		c := w.call.replace(by)
		w.call = &c
		return w
	}
	var b strings.Builder
	for rest := w.text; rest != ""; {
		n := 1
		switch c := rest[0]; {
		case expression && (c == '"' || c == '\'' || c == '`'):
			n = quoted(rest)
		case isWord(c):
			n = len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return r < 0x80 && isWord(byte(r)) }))
			if with, ok := by(rest[:n]); ok {
				text := with.text
				if expression && strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 || !isWord(byte(r)) }) {
					text = "(" + text + ")"
				}
				b.WriteString(text)
				rest = rest[n:]
				continue
			}
		}
		b.WriteString(rest[:n])
		rest = rest[n:]
	}
	w.text = b.String()
	return w
}

func isWord(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// quoted returns the length of the quoted text at the start of an expression.
func quoted(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == text[0]:
			return i + 1
		case text[i] == '\\' && text[0] != '`':
			i++
		}
	}
	return len(text)
}
