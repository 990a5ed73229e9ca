// Package expr compiles and evaluates the expression language.
package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// Expr is a compiled expression over the fields of a stream: the filter of a feature (where), a
// derived field (expr) or the filter of a stream's records (match); or over other features: a
// derived feature (expr), beside the event being scored.
//
// The syntax is a subset of the Expr language (expr-lang.org): literals, fields, `== != < <= > >=`,
// `and or not`, `+ - * / %`, `in` over a list or a range, `contains startsWith endsWith matches`,
// `??`, `c ? a : b`, the functions of the tables in …functions.go, and elements of lists and their reductions
// (elements.go) over features. The result depends on nothing but the event.
//
// Nulls are as in SQL. Anything computed from a null is null. A comparison with a null, also by `!=`, is unknown, and
// so is its negation. A filter selects only events for which it is true. `field == nil`, `field != nil` and `field ??
// other` test for nulls. A division by zero is null.
//
// Ints and decimals are exact, in comparisons with literals as in sums and products, with 128 bits
// in between; with a float, and in every division, the result is a float. Results over a record
// must fit into 64 bits in the end, as fields do; results over features into 128, as sums do. Over a record, what does
// not fit is an error; over features it is null.
type Expr struct {
	// Text is the expression in canonical form: expressions that differ in white space, brackets or the spelling of
	// operators have the same text.
	Text string
	// Steps is how many steps the patterns in it have at most, each of some ten bytes.
	Steps int

	root  term
	want  value.Type
	paths [][]string // of a match: the paths of its values in the record
	frame frame

	ofEvent []int // see OfEvent
}

// Error says why an expression does not compile.
type Error struct {
	Column  int // in characters, from 1
	Message string
}

// Error returns the message, one line.
func (e *Error) Error() string { return e.Message }

// The length of an expression, and so its nesting, is bounded. So is the number of its parts: `a < b < c` and `a ?: b`
// use a part twice, which doubles at each level of nesting.
const (
	maxExprLength = 4096
	maxExprParts  = 1024
)

// Variable is a named value in expressions.
type Variable struct {
	Name  string
	Type  value.Type
	Scale uint8 // of a decimal: the most fractional digits
	// Shape is that of a feature. Type and Scale are those of its values; with Categories, which have the type Category.
	Shape    aggregate.Shape
	Category value.Type
}

// Compile compiles an expression over fields. Eval takes the values of the fields, in their order.
// The result has the type wanted, or any type if that is Null. Its error is an *Error.
func Compile(text string, fields []Variable, want value.Type) (*Expr, error) {
	return compileExpr(text, &exprCompiler{fields: fields}, want)
}

// Names finds what an expression over features names. Each returns the index among the values, or of a feature that is not a
// scalar among the Elements, that EvalWith takes.
type Names interface {
	Feature(name string) (int, Variable, error)
	Column(table, field string) (int, Variable, error) // a field of a table
	Row(table, key string) (int, Variable, error)      // whether a table has a row for a key
	// RowOfEvent is Row for the value of a field of the event being scored.
	RowOfEvent(table, field string) (int, Variable, error)
	IsTable(name string) bool
}

// ErrReported is the error of Names that have already reported what is wrong.
var ErrReported = errors.New("already reported")

// EventName is the name in an expression over features of the event being scored, whose fields are its members.
const EventName = "event"

// CompileOver compiles an expression over features and fields of tables, which it looks up, and over the fields of the
// event being scored; nil means that there is no such event. See EvalWith. Its error is ErrReported or an *Error.
func CompileOver(text string, names Names, event []Variable, want value.Type) (*Expr, error) {
	return compileExpr(text, &exprCompiler{names: names, fields: event}, want)
}

// OfEvent returns the fields of the event being scored that the expression reads, as their indexes.
func (e *Expr) OfEvent() []int { return e.ofEvent }

// Paths returns the paths in the record that a match reads.
func (e *Expr) Paths() [][]string {
	if e == nil {
		return nil
	}
	return e.paths
}

// CompileMatch compiles the filter of a stream's records. Its names are paths in the record itself,
// which has no types yet: a comparison of different types is unknown. Its error is an *Error.
func CompileMatch(text string) (*Expr, error) {
	return compileExpr(text, &exprCompiler{raw: true}, value.Bool)
}

func compileExpr(text string, c *exprCompiler, want value.Type) (*Expr, error) {
	if len(text) > maxExprLength {
		return nil, tooLong()
	}
	if !utf8.ValidString(text) {
		return nil, &Error{Column: 1, Message: "the expression is not valid UTF-8"}
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, syntaxErrorOf(text, err)
	}
	c.source = []rune(text)
	root, err := c.compile(tree.Node)
	if err != nil {
		return nil, err
	}
	if !assignable(root.typ, want) {
		return nil, errorAt(tree.Node, "the expression must be %s, not %s", WithArticle(want), WithArticle(root.typ))
	}
	ast.Walk(&tree.Node, exactNumbers{c}) // after the check of the number of parts
	canonical := tree.Node.String()
	if len(canonical) > maxExprLength {
		return nil, tooLong()
	}
	return &Expr{
		Text: canonical, Steps: c.steps, root: root, want: want, paths: c.paths, ofEvent: c.ofEvent,
		frame: frame{results: make([]value.Value, c.results), args: make([]*value.Value, c.args), overFeatures: c.names != nil},
	}, nil
}

func tooLong() error {
	return &Error{Column: 1, Message: fmt.Sprintf("the expression is longer than %d bytes", maxExprLength)}
}

// onOneLine keeps what a message quotes, such as a pattern, on one line.
var onOneLine = strings.NewReplacer("\n", `\n`, "\r", `\r`)

func errorAt(n ast.Node, format string, args ...any) error {
	return &Error{Column: n.Location().From + 1, Message: onOneLine.Replace(fmt.Sprintf(format, args...))}
}

// assignable reports whether a result of one type converts to another without loss.
func assignable(from, to value.Type) bool {
	switch {
	case from == to || from == value.Null || to == value.Null:
		return true
	case to == value.Float:
		return from.Numeric()
	case to == value.Decimal:
		return from == value.Int
	}
	return false
}

// Eval computes the expression; what is unknown is null. The result may alias the values and the memory of the Expr: it
// is valid until the next Eval. It is not safe for concurrent use; see Clone.
func (e *Expr) Eval(values []value.Value) (value.Value, error) { return e.EvalWith(values, nil, nil) }

// EvalWith is Eval of an expression over features and over the event being scored, which is the values of its fields. Features that
// are not scalars have elements, at their indexes.
func (e *Expr) EvalWith(values []value.Value, elements []Elements, event []value.Value) (value.Value, error) {
	e.frame.values, e.frame.elements, e.frame.event = values, elements, event
	e.frame.text, e.frame.err, e.frame.beyond = e.frame.text[:0], nil, false
	v := e.root.eval(&e.frame)
	if v.Wide() && !e.frame.overFeatures {
		return value.Value{}, ErrOverflow
	}
	if e.frame.err != nil {
		return value.Value{}, e.frame.err
	}
	switch {
	case e.want == v.Type:
	case e.want == value.Float && v.Type.Numeric():
		return value.Value{Type: value.Float, Flt: v.Float64()}, nil
	case e.want == value.Decimal && v.Type == value.Int:
		of := *v
		of.Type = value.Decimal
		return of, nil
	}
	return *v, nil
}

// TrueWith reports whether an expression like one of EvalWith is true. One that is unknown is not.
func (e *Expr) TrueWith(values, event []value.Value) bool {
	e.frame.values, e.frame.event, e.frame.text, e.frame.err, e.frame.beyond = values, event, e.frame.text[:0], nil, false
	v := e.root.eval(&e.frame) // not copied: this is asked of each event of a log
	return v.Type == value.Bool && v.Num != 0
}

// Beyond reports whether the last evaluation of an expression over features took something for null because it was too large.
func (e *Expr) Beyond() bool { return e.frame.beyond }

// True reports whether the expression is true for the values. One that is unknown is not.
func (e *Expr) True(values []value.Value) (bool, error) {
	v, err := e.Eval(values)
	return v.Type == value.Bool && v.Num != 0, err
}

// Type returns the type of the result; Null if it is known only from the values.
func (e *Expr) Type() value.Type { return e.root.typ }

// Scale returns the greatest number of fractional digits of a decimal result.
func (e *Expr) Scale() uint8 { return e.root.scale }

// Clone returns a copy of the expression for another goroutine.
func (e *Expr) Clone() *Expr {
	if e == nil {
		return nil
	}
	clone := new(Expr)
	e.CloneInto(clone)
	return clone
}

// CloneInto is Clone in the memory of another copy, which is no longer used. Its results stay valid.
func (e *Expr) CloneInto(clone *Expr) {
	results, args := clone.frame.results, clone.frame.args
	*clone = *e
	clone.frame = frame{
		results: slices.Grow(results[:0], len(e.frame.results))[:len(e.frame.results)],
		args:    slices.Grow(args[:0], len(e.frame.args))[:len(e.frame.args)], overFeatures: e.frame.overFeatures,
	}
}

// term is a compiled part of an expression.
type term struct {
	typ     value.Type // Null if it is known only from the event
	scale   uint8      // the most fractional digits of a decimal result
	literal bool       // its value is the same for all events
	null    bool       // the literal nil
	// eval returns the value, which must not be changed and is valid until the next Eval. Values are large: most terms
	// pass on one that exists.
	eval func(*frame) *value.Value
}

// frame is the input of a term's evaluation.
type frame struct {
	values   []value.Value
	elements []Elements     // of the features among the values that are not scalars
	event    []value.Value  // the fields of the event being scored
	results  []value.Value  // memory for the results of terms that compute new values
	args     []*value.Value // memory for the arguments of functions
	text     []byte         // memory for strings
	err      error          // the first
	// overFeatures means that the result may be of 128 bits, and that what cannot be computed is null and no error: an
	// answer has nowhere to report one, and `??` must find the null.
	overFeatures bool
	beyond       bool // something was too large to be computed, over features
}

// constant returns the value of a literal.
func (t term) constant() *value.Value { return t.eval(nil) }

func literal(v value.Value) term {
	return term{typ: v.Type, scale: v.Scale, literal: true, null: v.IsNull(), eval: func(*frame) *value.Value { return &v }}
}

// The results of many terms.
var (
	null value.Value
	no   = value.Value{Type: value.Bool}
	yes  = value.Value{Type: value.Bool, Num: 1}
)

func truth(b bool) *value.Value {
	if b {
		return &yes
	}
	return &no
}

// Truth makes a Bool.
func Truth(b bool) value.Value { return *truth(b) }

// WithArticle returns the type's name with its article.
func WithArticle(t value.Type) string {
	switch t {
	case value.Null:
		return "null"
	case value.Int:
		return "an int"
	}
	return "a " + t.String()
}
