package expr

import (
	"fmt"
	"regexp"
	"strings"

	exprfile "github.com/expr-lang/expr/file"
)

// token matches how the parser names an unexpected token.
var token = regexp.MustCompile(`^unexpected token (\w+)\("(.*)"\)`)

// syntaxMessages are the parser's messages, or what they begin with, and our own for them.
var syntaxMessages = []struct{ theirs, ours string }{
	{"unexpected token EOF", "the expression ends too early: a value, a name or a closing bracket is missing"},
	{"unexpected end of expression", "the expression ends too early: a value, a name or a closing bracket is missing"},
	{"literal not terminated", "text that begins with a quote must end with the same quote"},
	{"invalid char escape", `unknown escape in text: write a backslash as \\`},
	{"unclosed comment", "a comment that begins with /* must end with */"},
	{"integer literal is too large", "the number is too large"},
	{"float literal is too large", "the number is too large"},
	{"invalid integer literal", "the number is too large"},
	{"invalid float literal", "the number is too large"},
	{"invalid hex literal", "a number is written as 12 or 0.5"},
	{"bad number syntax", "a number is written as 12 or 0.5"},
	{"Operator (", "?? cannot be used beside another operator: put one of the two in parentheses"},
	{"wrap predicate with brackets", "this part of the Expr language is not supported"},
}

// syntaxErrorOf returns the parser's error in our words.
func syntaxErrorOf(text string, err error) error {
	e, ok := err.(*exprfile.Error)
	if !ok {
		return &Error{Column: 1, Message: onOneLine.Replace(err.Error())}
	}
	return &Error{Column: e.From + 1, Message: onOneLine.Replace(syntaxMessage(text, e.Message))}
}

func syntaxMessage(text, theirs string) string {
	if strings.TrimSpace(text) == "" {
		return "the expression is empty"
	}
	if found := token.FindStringSubmatch(theirs); found != nil {
		return unexpected(found[1], found[2])
	}
	if strings.Contains(theirs, "strconv.") && strings.Contains(theirs, "invalid syntax") { // of a number such as 5e
		theirs = "bad number syntax"
	}
	for _, m := range syntaxMessages {
		if strings.HasPrefix(theirs, m.theirs) {
			return m.ours
		}
	}
	return theirs
}

// sqlWords say what to write in place of operators of SQL. Those that both languages have are here in capitals only.
var sqlWords = map[string]string{
	"and":     "operators are written in lower case",
	"or":      "operators are written in lower case",
	"not":     "operators are written in lower case",
	"in":      "operators are written in lower case",
	"is":      "a null is asked for by == nil, any other value by != nil",
	"like":    "use contains, startsWith, endsWith or matches",
	"between": "a range is written 1 <= n <= 8",
}

// unexpected says what to do about a token in the wrong place.
func unexpected(kind, text string) string {
	switch {
	case text == "=":
		return `unexpected "=": equality is written ==`
	case kind == "Bracket" && strings.Contains(")]}", text):
		return fmt.Sprintf("unexpected %q: nothing that it closes is open, or a value is missing before it", text)
	case kind == "Operator":
		return fmt.Sprintf("unexpected %q: an operator stands between two values", text)
	case sqlWords[strings.ToLower(text)] != "":
		return fmt.Sprintf("unexpected %q: %s", text, sqlWords[strings.ToLower(text)])
	}
	return fmt.Sprintf("unexpected %q: an operator such as ==, and, or is missing before it", text)
}
