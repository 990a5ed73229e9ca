package expr

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-stream/weir/value"
)

// canonicalOperators maps alternative spellings to the canonical ones.
var canonicalOperators = map[string]string{"&&": "and", "||": "or", "!": "not"}

// ErrOverflow is the error of a calculation whose result does not fit its type.
var ErrOverflow = errors.New("the result of a calculation is too large")

var (
	errLong       = errors.New("the result of an expression is longer than 65536 bytes")
	errNormalized = errors.New("a text that is normalized is longer than 65536 bytes")
)

// fail returns the null in place of what cannot be computed.
func (f *frame) fail(err error) value.Value {
	switch {
	case f.overFeatures:
		f.beyond = true
	case f.err == nil:
		f.err = err
	}
	return value.Value{}
}

func (c *exprCompiler) unary(n *ast.UnaryNode) (term, error) {
	if o, ok := canonicalOperators[n.Operator]; ok {
		n.Operator = o
	}
	x, err := c.compile(n.Node)
	if err != nil {
		return term{}, err
	}
	switch n.Operator {
	case "not":
		if !assignable(x.typ, value.Bool) {
			return term{}, errorAt(n, "`not` takes a bool, not %s", WithArticle(x.typ))
		}
		return term{typ: value.Bool, eval: func(f *frame) *value.Value {
			v := x.eval(f)
			if v.Type != value.Bool {
				return &null
			}
			return truth(v.Num == 0)
		}}, nil
	default: // - and +
		if x.typ != value.Null && !x.typ.Numeric() {
			return term{}, errorAt(n, "`%s` takes a number, not %s", n.Operator, WithArticle(x.typ))
		}
		op, zero := subtract, value.Value{Type: value.Int}
		if n.Operator == "+" {
			op = addition
		}
		if x.literal {
			v := arithmetic(&frame{}, &op, &zero, x.constant())
			return term{typ: x.typ, scale: x.scale, literal: true, eval: func(*frame) *value.Value { return &v }}, nil
		}
		result := c.result()
		return term{typ: x.typ, scale: x.scale, eval: func(f *frame) *value.Value {
			to := &f.results[result]
			*to = arithmetic(f, &op, &zero, x.eval(f))
			return to
		}}, nil
	}
}

// perhapsText adds a hint about quotes to the error for an unknown name that is compared with a text.
func perhapsText(err error, beside term, n ast.Node) error {
	unknown, ok := err.(*Error)
	if name, is := n.(*ast.IdentifierNode); ok && is && beside.typ == value.String && !strings.HasSuffix(unknown.Message, "?") {
		unknown.Message += fmt.Sprintf("; if a string is meant, write %q", name.Value)
	}
	return err
}

func (c *exprCompiler) binary(n *ast.BinaryNode) (term, error) {
	if o, ok := canonicalOperators[n.Operator]; ok {
		n.Operator = o
	}
	switch n.Operator {
	case "in":
		return c.in(n)
	case "matches":
		return c.matches(n)
	}
	l, err := c.compile(n.Left)
	if err != nil {
		return term{}, err
	}
	r, err := c.compile(n.Right)
	if err != nil {
		return term{}, perhapsText(err, l, n.Right)
	}
	mismatch := errorAt(n, "`%s` is not allowed between %s and %s", n.Operator, WithArticle(l.typ), WithArticle(r.typ))
	switch n.Operator {
	case "and", "or":
		if !assignable(l.typ, value.Bool) || !assignable(r.typ, value.Bool) {
			return term{}, mismatch
		}
		return junction(n.Operator == "or", l, r), nil
	case "??":
		typ, ok := common(l.typ, r.typ)
		if !ok {
			return term{}, mismatch
		}
		return term{typ: typ, scale: max(l.scale, r.scale), eval: func(f *frame) *value.Value {
			if v := l.eval(f); !v.IsNull() {
				return v
			}
			return r.eval(f)
		}}, nil
	case "==", "!=", "<", "<=", ">", ">=":
		if !canCompare(n.Operator, l.typ, r.typ) {
			return term{}, mismatch
		}
		return c.comparison(n.Operator, l, r), nil
	case "contains", "startsWith", "endsWith":
		if !assignable(l.typ, value.String) || !assignable(r.typ, value.String) {
			return term{}, mismatch
		}
		return stringTest(n.Operator, l, r), nil
	}
	if n.Operator == "+" && (l.typ == value.String || r.typ == value.String) {
		if !assignable(l.typ, value.String) || !assignable(r.typ, value.String) {
			return term{}, mismatch
		}
		return c.joined(l, r), nil
	}
	op, ok := arithmetics[n.Operator]
	if !ok {
		return term{}, errorAt(n, "the operator `%s` is not supported: a power is written pow(x, y)", n.Operator) // ** or ^
	}
	typ, ok := op.typ(l.typ, r.typ)
	if !ok {
		return term{}, mismatch
	}
	scale := max(l.scale, r.scale)
	if n.Operator == "*" {
		scale = min(l.scale+r.scale, value.MaxScale)
	}
	result := c.result()
	return term{typ: typ, scale: scale, eval: func(f *frame) *value.Value {
		to := &f.results[result]
		*to = arithmetic(f, &op, l.eval(f), r.eval(f))
		return to
	}}, nil
}

// junction is `and` or `or` in three-valued logic: false decides an `and`, true an `or`, and
// otherwise unknown stays unknown.
func junction(or bool, l, r term) term {
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		a := l.eval(f)
		if a.Type == value.Bool && (a.Num != 0) == or {
			return a
		}
		b := r.eval(f)
		switch {
		case b.Type != value.Bool:
			return &null
		case (b.Num != 0) == or:
			return b
		case a.Type != value.Bool:
			return &null
		}
		return b
	}}
}

// canCompare reports whether values of two types can be compared. Timestamps are compared with ints as milliseconds.
func canCompare(operator string, a, b value.Type) bool {
	if a == value.Null || b == value.Null {
		return true
	}
	equality := operator == "==" || operator == "!="
	switch a {
	case value.Bool:
		return b == a && equality
	case value.String:
		return b == a
	case value.Location:
		return false
	}
	return a == b || a.Numeric() && b.Numeric() || a == value.Timestamp && b == value.Int || a == value.Int && b == value.Timestamp
}

func (c *exprCompiler) comparison(operator string, l, r term) term {
	switch {
	case l.null || r.null:
		return nullTest(operator, l, r)
	case c.keeps(l, r) && (operator == "==" || operator == "!="):
		return sameText(operator == "==", l, r)
	}
	holds := orders[operator]
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		order, ok := compare(l.eval(f), r.eval(f))
		if !ok {
			return &null
		}
		return truth(holds[order+1])
	}}
}

// keeps reports whether two sides are texts over features: state may keep a long one as its beginning and a hash, and the event in
// hand has all of it.
func (c *exprCompiler) keeps(l, r term) bool {
	return c.names != nil && l.typ == value.String && r.typ == value.String
}

// sameText returns a comparison of such texts.
func sameText(same bool, l, r term) term {
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		a, b := l.eval(f), r.eval(f)
		if a.IsNull() || b.IsNull() {
			return &null
		}
		return truth(value.SameText(a.Str, b.Str) == same)
	}}
}

// orders tells for which orders of its two sides a comparison is true: less, equal, greater.
var orders = map[string][3]bool{
	"==": {false, true, false}, "!=": {true, false, true},
	"<": {true, false, false}, "<=": {true, true, false},
	">": {false, false, true}, ">=": {false, true, true},
}

// nullTest returns a comparison with the literal nil, which tests for nulls.
func nullTest(operator string, l, r term) term {
	x := l
	if l.null {
		x = r
	}
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		v := x.eval(f)
		switch operator {
		case "==":
			return truth(v.IsNull())
		case "!=":
			return truth(!v.IsNull())
		}
		return &null
	}}
}

// compare orders two values if they can be compared.
func compare(a, b *value.Value) (int, bool) {
	switch {
	case a.Type == value.Null || b.Type == value.Null:
		return 0, false
	case a.Type == value.String || b.Type == value.String:
		return bytes.Compare(a.Str, b.Str), a.Type == b.Type
	case a.Type == value.Bool || b.Type == value.Bool:
		return cmp.Compare(a.Num, b.Num), a.Type == b.Type
	case a.Type == value.Location || b.Type == value.Location:
		return 0, false
	case a.Type == value.Float || b.Type == value.Float:
		return cmp.Compare(a.Float64(), b.Float64()), true
	}
	return value.CompareExact(a, b), true
}

func stringTest(operator string, l, r term) term {
	var test func(s, part []byte) bool
	switch operator {
	case "contains":
		test = bytes.Contains
	case "startsWith":
		test = bytes.HasPrefix
	case "endsWith":
		test = bytes.HasSuffix
	}
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		a, b := l.eval(f), r.eval(f)
		if a.Type != value.String || b.Type != value.String {
			return &null
		}
		return truth(test(a.Str, b.Str))
	}}
}

func (c *exprCompiler) joined(l, r term) term {
	result := c.result()
	return term{typ: value.String, eval: func(f *frame) *value.Value {
		a, b := l.eval(f), r.eval(f)
		if a.Type != value.String || b.Type != value.String {
			return &null
		}
		start, to := len(f.text), &f.results[result]
		f.text = append(append(f.text, a.Str...), b.Str...)
		*to = f.held(start)
		return to
	}}
}

func (c *exprCompiler) matches(n *ast.BinaryNode) (term, error) {
	x, err := c.compile(n.Left)
	if err != nil {
		return term{}, err
	}
	if !assignable(x.typ, value.String) {
		return term{}, errorAt(n.Left, "`matches` takes a string, not %s", WithArticle(x.typ))
	}
	literal, ok := n.Right.(*ast.StringNode)
	if !ok {
		return term{}, errorAt(n.Right, "the pattern of `matches` must be a literal string")
	}
	p, err := compilePattern(literal.Value)
	if err != nil {
		return term{}, errorAt(n.Right, "%v", err)
	}
	c.steps += p.size
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		v := x.eval(f)
		if v.Type != value.String || !p.searches(f, v.Str) {
			return &null
		}
		return truth(p.Match(v.Str))
	}}, nil
}

// in is `x in [1, 2]`, `x in 1..9` and, over features, `x in feature` and `key in table`.
func (c *exprCompiler) in(n *ast.BinaryNode) (term, error) {
	if call, ok := n.Right.(*ast.CallNode); ok && len(call.Arguments) == 1 && call.Callee.String() == "list" {
		n.Right = call.Arguments[0] // x in list(NAME) is x in NAME
	}
	if name, ok := n.Right.(*ast.IdentifierNode); ok && c.names != nil {
		if m, ok := c.manyBeside(name); ok {
			return c.member(n, m)
		}
		return c.row(n, name.Value)
	}
	x, err := c.compile(n.Left)
	if err != nil {
		return term{}, err
	}
	if r, ok := n.Right.(*ast.BinaryNode); ok && r.Operator == ".." {
		bounds, err := c.literals(x, r.Left, r.Right)
		if err != nil {
			return term{}, err
		}
		return term{typ: value.Bool, eval: func(f *frame) *value.Value {
			v := x.eval(f)
			low, ok := compare(&bounds[0], v)
			high, _ := compare(v, &bounds[1])
			if !ok {
				return &null
			}
			return truth(low <= 0 && high <= 0)
		}}, nil
	}
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return term{}, errorAt(n.Right, "`in` takes a list of literals or a range")
	}
	members, err := c.literals(x, list.Nodes...)
	if err != nil {
		return term{}, err
	}
	kept := c.keeps(x, x)
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		v := x.eval(f)
		if v.IsNull() {
			return &null
		}
		if kept {
			text := value.Sought{Text: v.Str}
			return truth(slices.ContainsFunc(members, func(m value.Value) bool { return text.Is(m.Str) }))
		}
		return truth(slices.ContainsFunc(members, func(m value.Value) bool {
			order, ok := compare(v, &m)
			return ok && order == 0
		}))
	}}, nil
}

// row compiles `key in table` and `event.field in table`.
func (c *exprCompiler) row(n *ast.BinaryNode, table string) (term, error) {
	if key, ok := n.Left.(*ast.IdentifierNode); ok {
		i, of, err := c.names.Row(table, key.Value)
		return looked(n, i, of, err)
	}
	path, ok := pathOf(n.Left)
	if !ok || path[0] != EventName {
		return term{}, errorAt(n.Left, "`in` takes the name of a key before a list or a table, as in card_id in %s, or a field of the event in hand", table)
	}
	if _, err := c.compile(n.Left); err != nil {
		return term{}, err
	}
	i, of, err := c.names.RowOfEvent(table, path[1])
	return looked(n, i, of, err)
}

// literals returns the values that x is compared with.
func (c *exprCompiler) literals(x term, nodes ...ast.Node) ([]value.Value, error) {
	terms, err := c.compileAll(nodes...)
	if err != nil {
		return nil, err
	}
	values := make([]value.Value, len(terms))
	for i, t := range terms {
		if !t.literal || t.null {
			return nil, errorAt(nodes[i], "`in` takes literals only")
		}
		if !canCompare("==", x.typ, t.typ) {
			return nil, errorAt(nodes[i], "%s is never equal to %s", WithArticle(x.typ), WithArticle(t.typ))
		}
		values[i] = *t.constant()
	}
	return values, nil
}
