package features

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/kinds"
)

// macro is a feature in the one-line form that has parameters:
//
//	macros:
//	  M_DEVICES(user, device): COUNT_DISTINCT(1d, transaction, user, device)
//	features:
//	  devices: M_DEVICES(user_id, device_id)
//
// Where a parameter stands as a whole word in an argument or in the value of
// an option, the argument takes its place. In a condition it does so outside of
// quotes, in brackets if it is more than a name or a number; a description and
// an owner stay as they are. The use of a macro may add options. A macro may
// use another one.
type macro struct {
	name       word
	parameters []string
	body       call
	broken     bool // there is a finding that says why
}

func (m *macro) form() string { return m.name.text + "(" + strings.Join(m.parameters, ", ") + ")" }

// macro reads a macro's definition.
func (l *loader) macro(e entry) {
	m, ok := l.macroHeader(e.key)
	if !ok {
		return
	}
	if first, ok := l.macros[m.name.text]; ok {
		l.report(m.name.place, duplicate, "macro", m.name.text, first.name.place)
		return
	}
	if slices.Contains(functionNames(), strings.ToLower(m.name.text)) {
		l.report(m.name.place, "macro %q has the name of a function", m.name.text)
	}
	l.macros[m.name.text] = m
	m.broken = true
	w, ok := l.scalar(e.value, "a macro")
	if !ok {
		return
	}
	if m.body, ok = l.parse(w); !ok {
		return
	}
	m.broken = false
	used := map[string]bool{}
	m.body.replace(func(name string) (word, bool) {
		used[name] = true
		return word{}, false
	})
	for _, p := range m.parameters {
		if !used[p] {
			l.report(m.name.place, "parameter %q of macro %s is not used", p, m.name.text)
		}
	}
}

// macroHeader reads NAME(parameter, …).
func (l *loader) macroHeader(key word) (*macro, bool) {
	s := &scanner{word: key}
	m := &macro{name: s.bare()}
	wrong := func() (*macro, bool) {
		l.report(key.place, "a macro is NAME(parameter, …), not %q", key.text)
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
			l.report(p.place, "parameter %q of macro %s stands twice", p.text, m.name.text)
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

// functionNames are the functions that one-line forms may call.
func functionNames() []string {
	var names []string
	for _, k := range kinds.All {
		names = append(names, k.Spec().Name)
	}
	return slices.Compact(names)
}

// checkMacros finds macros that call what is not there, or themselves.
func (l *loader) checkMacros() {
	for _, name := range slices.Sorted(maps.Keys(l.macros)) {
		var path []string
		broken := false
		for m := l.macros[name]; m != nil; m = l.macros[m.body.function.text] {
			if i := slices.Index(path, m.name.text); i >= 0 {
				last := l.macros[path[len(path)-1]]
				l.report(last.body.function.place, "%s", cycleError("macros", append(path[i:], m.name.text)))
				broken = true
				break
			}
			path = append(path, m.name.text)
			if broken = m.broken || !l.callable(m); broken {
				break
			}
		}
		for _, name := range path {
			l.macros[name].broken = l.macros[name].broken || broken
		}
	}
}

// callable says whether a macro's body calls a function, or a macro with as
// many arguments as it takes.
func (l *loader) callable(m *macro) bool {
	f := m.body.function
	if called, ok := l.macros[f.text]; ok {
		return l.fits(called, m.body)
	}
	if slices.Contains(functionNames(), strings.ToLower(f.text)) {
		return true
	}
	l.report(f.place, "%s", unknown("function", f.text, append(functionNames(), slices.Collect(maps.Keys(l.macros))...)))
	return false
}

// fits says whether a call gives a macro as many arguments as it takes.
func (l *loader) fits(m *macro, c call) bool {
	if len(c.arguments) == len(m.parameters) {
		return true
	}
	l.report(c.function.place, "macro %s takes %s, not %d: %s", m.name.text,
		counted(len(m.parameters), "argument"), len(c.arguments), m.form())
	return false
}

// expand puts the bodies of macros into the place of their calls; false where
// there is a finding about it.
func (l *loader) expand(c call) (call, bool) {
	for m, ok := l.macros[c.function.text]; ok; m, ok = l.macros[c.function.text] {
		if m.broken || !l.fits(m, c) {
			return c, false
		}
		c = m.apply(c)
		for _, w := range c.words() {
			if len(w.text) > maxExprLength {
				l.report(c.function.place, "the expansion is longer than %d bytes", maxExprLength)
				return c, false
			}
		}
	}
	return c, true
}

// apply is the body of the macro for a call. Its words stand where the call
// does, but for those that are arguments.
func (m *macro) apply(c call) call {
	within := c.function.place
	if within.macro != "" {
		within.macro += " -> "
	}
	within.macro += m.name.text
	body := m.body.replace(func(name string) (word, bool) {
		i := slices.Index(m.parameters, name)
		if i < 0 {
			return word{}, false
		}
		argument := c.arguments[i]
		argument.place.macro = within.macro
		return argument, true
	})
	body.function.place, body.function.inner = within, false
	for _, w := range body.words() {
		if w.place.macro == "" {
			w.place, w.inner = within, false
		}
	}
	body.options = append(body.options, c.options...)
	return body
}

// words are the arguments of a call, and the names and the values of its
// options.
func (c *call) words() []*word {
	var words []*word
	for i := range c.arguments {
		words = append(words, &c.arguments[i])
	}
	for i := range c.options {
		words = append(words, &c.options[i].name, &c.options[i].value)
	}
	return words
}

// replace is the call with other words for names in it.
func (c *call) replace(by func(name string) (word, bool)) call {
	r := call{function: c.function}
	for _, a := range c.arguments {
		r.arguments = append(r.arguments, a.replace(by, false))
	}
	for _, o := range c.options {
		switch o.name.text {
		case "description", "owner":
		default:
			o.value = o.value.replace(by, takesExpression(o.name.text))
		}
		r.options = append(r.options, o)
	}
	return r
}

// takesExpression says whether the value of an option is an expression.
func takesExpression(option string) bool {
	return option == "where" || slices.ContainsFunc(kinds.All, func(k kinds.Kind) bool {
		return slices.ContainsFunc(k.Spec().Parameters, func(p kinds.Parameter) bool {
			return p.Name == option && p.Form == kinds.Condition
		})
	})
}

// replace is a word, or an expression, with others for the names in it.
func (w word) replace(by func(name string) (word, bool), expression bool) word {
	if whole, ok := by(w.text); ok {
		return whole
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

// quoted is the length of the text in quotes with which an expression begins.
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
