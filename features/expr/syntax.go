package expr

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	exprfile "github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
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
	if runes := []rune(text); 0 < e.From && e.From < len(runes) && string(runes[e.From-1:e.From+1]) == "<>" {
		return &Error{Column: e.From, Message: `unexpected "<>": inequality is written !=`}
	}
	if call := calledIf(text); call != nil {
		return errorAt(call, unknownFunction, "if", otherFunctions["if"])
	}
	return &Error{Column: e.From + 1, Message: onOneLine.Replace(syntaxMessage(text, e.Message))}
}

// calledIf returns the first call of a function if, such as if(a, b, c); nil if there is none, or the text has another
// error. The parser takes its name for the word that begins `if a {b} else {c}`.
func calledIf(text string) ast.Node {
	tree, err := parser.ParseWithConfig(text, &conf.Config{DisableIfOperator: true})
	if err != nil {
		return nil
	}
	var calls callsOfIf
	ast.Walk(&tree.Node, &calls)
	return calls.first
}

type callsOfIf struct{ first ast.Node }

// Visit looks at one part of an expression.
func (v *callsOfIf) Visit(n *ast.Node) {
	call, ok := (*n).(*ast.CallNode)
	if !ok {
		return
	}
	name, ok := call.Callee.(*ast.IdentifierNode)
	if ok && name.Value == "if" && (v.first == nil || call.Location().From < v.first.Location().From) {
		v.first = call
	}
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
	"when":    otherwise,
	"then":    otherwise,
	"else":    otherwise,
	"as":      "a value of another type is written int(x), float(x), decimal(x, 2) or string(x)",
	",":       `a list, which stands after in, is written ["a", "b"]`,
}

const otherwise = "a choice is written c ? a : b"

// otherFunctions are functions of SQL and of other languages, with what to write here instead: the nearest names here may mean
// something else.
var otherFunctions = map[string]string{
	"if": "c ? a : b", "iff": "c ? a : b", "iif": "c ? a : b", "not": "not x, in lower case",
	"ifnull": "coalesce", "isnull": "x == nil", "nvl": "coalesce", "nullif": "a == b ? nil : a",
	"cast": "int, float, decimal or string", "try_cast": "int, float, decimal or string", "bigint": "int", "integer": "int", "to_int": "int",
	"double": "float", "to_float": "float", "number": "decimal", "numeric": "decimal", "str": "string", "text": "string", "varchar": "string", "to_char": "string",
	"greatest": "max", "least": "min", "ceiling": "ceil", "trunc": "int", "truncate": "int", "mod": "a % b", "sign": "x > 0 ? 1 : x < 0 ? -1 : 0",
	"power": "pow", "ln": "log", "log10": "log(x) / log(10)", "log2": "log(x) / log(2)", "square": "x * x",
	"length": "len", "char_length": "len", "character_length": "len", "strlen": "len", "size": "len", "cardinality": "len",
	"ucase": "upper", "lcase": "lower", "substring": "substr", "mid": "substr", "left": "substr(s, 1, length)", "right": "substr(s, -length)",
	"concat": "a + b", "split_part": "split", "regexp_extract": "extract", "regexp_substr": "extract", "regexp_like": "s matches pattern",
	"regexp_matches": "s matches pattern", "contains": "a contains b", "strpos": "a contains b", "instr": "a contains b",
	"starts_with": "a startsWith b", "startswith": "a startsWith b", "ends_with": "a endsWith b", "endswith": "a endsWith b",
	"md5": "hash", "sha1": "hash", "sha2": "hash", "sha256": "hash", "edit_distance": "levenshtein", "jaro_winkler_similarity": "jaro_winkler",
	"dayofweek": "weekday", "day_of_week": "weekday", "isodow": "weekday", "dow": "weekday", "dayofmonth": "day", "to_date": "date",
	"datediff": "t - u, which is in milliseconds", "date_diff": "t - u, which is in milliseconds", "timestampdiff": "t - u, which is in milliseconds",
	"st_distance": "haversine", "distance": "haversine", "geo_distance": "haversine", "point": "location", "st_point": "location",
}

const unknownFunction = "unknown function %q: write %s" // of otherFunctions

// unexpected says what to do about a token in the wrong place.
func unexpected(kind, text string) string {
	switch {
	case text == "=":
		return `unexpected "=": equality is written ==`
	case kind == "Bracket" && strings.Contains(")]}", text):
		return fmt.Sprintf("unexpected %q: nothing that it closes is open, or a value is missing before it", text)
	case kind == "Operator" && text != ",":
		return fmt.Sprintf("unexpected %q: an operator stands between two values", text)
	case sqlWords[strings.ToLower(text)] != "":
		return fmt.Sprintf("unexpected %q: %s", text, sqlWords[strings.ToLower(text)])
	}
	return fmt.Sprintf("unexpected %q: an operator such as ==, and, or is missing before it", text)
}
