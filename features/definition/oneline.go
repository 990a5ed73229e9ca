package definition

import (
	"fmt"
	"strconv"
	"strings"
)

// call is a feature in the one-line form, parsed: FUNCTION(argument…, name=value…). A value may be
// a call itself.
type call struct {
	function  word
	arguments []word
	options   []option
}

type option struct{ name, value word }

// syntaxError is a mistake in a one-line form, at a byte of its text.
type syntaxError struct {
	offset  int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// scanner reads a one-line form from left to right.
type scanner struct {
	word  word
	next  int // byte
	depth int // of calls under way
}

// parseCall parses a one-line form. It does not check the meaning of the parts.
func parseCall(w word) (call, error) {
	s := &scanner{word: w}
	c, err := s.call()
	if err != nil {
		return c, err
	}
	s.space()
	if s.next < len(w.text) {
		err := s.unexpected("the end")
		if strings.IndexByte("+-*/<>=", w.text[s.next]) >= 0 {
			err = fmt.Errorf("%w: give each call a name, and write {expr: …} over the names", err)
		}
		return c, err
	}
	return c, nil
}

// maxCalls is how deep calls may nest.
const maxCalls = 2

// call reads a function's name and the brackets after it.
func (s *scanner) call() (c call, err error) {
	if s.depth++; s.depth > maxCalls {
		return c, s.errorAt(s.next, "%s", tooDeep)
	}
	defer func() { s.depth-- }()
	c.function = s.bare()
	if !isName(c.function.text) {
		return c, s.errorAt(0, "a feature is FUNCTION(window, stream, arguments…), or {expr: …} over other features, not %q", s.word.text)
	}
	if !s.accept('(') {
		return c, s.unexpected("'(' after the function's name")
	}
	for {
		s.space()
		start := s.next
		value, err := s.value()
		if err != nil {
			return c, err
		}
		switch {
		case s.accept('='):
			if !isName(value.text) {
				return c, s.errorAt(start, "bad option name %q", value.text)
			}
			s.space()
			given, err := s.value()
			if err != nil {
				return c, err
			}
			c.options = append(c.options, option{name: value, value: given})
		case len(c.options) > 0:
			return c, s.errorAt(start, "argument %q follows an option; options come last", value.text)
		default:
			c.arguments = append(c.arguments, value)
		}
		if s.accept(')') {
			break
		}
		if !s.accept(',') {
			err := s.unexpected("',' or ')'")
			if n := len(c.options); n > 0 && s.next < len(s.word.text) {
				err = fmt.Errorf("%w: %s", err, s.advice(c.options[n-1]))
			}
			return c, err
		}
	}
	return c, nil
}

// advice says what to do about text after the value of an option: usually the value needs quotes, but where it has them,
// or ends with the name of another option, only a comma is missing.
func (s *scanner) advice(o option) string {
	if before := strings.TrimRight(s.word.text[:s.next], " \t\r\n"); strings.HasSuffix(before, "'") || strings.HasSuffix(before, `"`) {
		return fmt.Sprintf("put a comma after the value of %s", o.name.text)
	}
	// There may be no words: a no-break space is a value.
	if words := strings.Fields(o.value.text); len(words) > 1 && s.word.text[s.next] == '=' {
		if last := words[len(words)-1]; new(writtenFeature).options()[last] != nil {
			return fmt.Sprintf("put a comma before %s", last)
		}
	}
	return fmt.Sprintf("put the value of %s in quotes", o.name.text)
}

func (s *scanner) space() {
	rest := s.word.text[s.next:]
	s.next += len(rest) - len(strings.TrimLeft(rest, " \t\r\n"))
}

func (s *scanner) accept(b byte) bool {
	s.space()
	if s.next < len(s.word.text) && s.word.text[s.next] == b {
		s.next++
		return true
	}
	return false
}

// bare reads up to the next punctuation.
func (s *scanner) bare() word {
	s.space()
	start := s.next
	if n := strings.IndexAny(s.word.text[start:], `(),="'`); n >= 0 {
		s.next += n
	} else {
		s.next = len(s.word.text)
	}
	text := strings.TrimRight(s.word.text[start:s.next], " \t\r\n")
	return s.word.part(start, text)
}

// value reads a bare word, a call, a list in square brackets, a window in braces, or a quoted text:
// taken literally in single quotes, with Go's backslash escapes in double quotes.
func (s *scanner) value() (word, error) {
	start := s.next
	if start == len(s.word.text) {
		return word{}, s.unexpected("an argument")
	}
	switch quote := s.word.text[start]; quote {
	case '\'', '"':
		end := closing(s.word.text[start:], quote)
		if end < 0 {
			return word{}, s.errorAt(start, "the quote is never closed")
		}
		s.next = start + end + 1
		text := s.word.text[start+1 : start+end]
		w := s.word.part(start+1, text)
		if quote == '"' && strings.ContainsAny(text, "\\\n") {
			unquoted, err := strconv.Unquote(`"` + text + `"`)
			if err != nil {
				return word{}, s.errorAt(start, "bad escape in %s", s.word.text[start:s.next])
			}
			w.text, w.inner = unquoted, false
		}
		return w, nil
	}
	if text := s.word.text[start:]; text[0] == '[' || text[0] == '{' {
		if end := strings.IndexAny(text, `]}()="'`); end > 0 && text[end] == text[0]+2 {
			s.next += end + 1
			return s.word.part(start, text[:end+1]), nil
		}
	}
	w := s.bare()
	if w.text == "" {
		return word{}, s.unexpected("an argument")
	}
	if isName(w.text) && strings.HasPrefix(s.word.text[s.next:], "(") {
		s.next = start
		c, err := s.call()
		w = s.word.part(start, s.word.text[start:s.next])
		w.call = &c
		return w, err
	}
	return w, nil
}

// closing returns where the quote at the start of text is closed, -1 if it is not.
func closing(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i
		case text[i] == '\\' && quote == '"':
			i++
		}
	}
	return -1
}

func (s *scanner) errorAt(offset int, format string, args ...any) error {
	return &syntaxError{offset: offset, message: fmt.Sprintf(format, args...)}
}

func (s *scanner) unexpected(expected string) error {
	s.space()
	found := "the end"
	if rest := s.word.text[s.next:]; rest != "" {
		found = strconv.Quote(string([]rune(rest)[:1]))
	}
	return s.errorAt(s.next, "expected %s, found %s", expected, found)
}

// quote writes a text so that value reads it back.
func quote(text string) string {
	if strings.ContainsRune(text, '\'') || strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return "'" + text + "'"
}

// isName reports whether a text may name a stream, a field, a feature or a service.
func isName(text string) bool {
	for i, c := range []byte(text) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
