package expr

import (
	"errors"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// exprCompiler turns a syntax tree into terms, and makes it canonical.
type exprCompiler struct {
	source  []rune
	fields  []Variable
	names   Names // if set, names are features, and fields are those of the event being scored
	ofEvent []int // see Expr.OfEvent
	raw     bool  // names are paths in the record
	paths   [][]string
	logged  *[]int // see Comparison.Fields; if set, fields are also those of the event being scored
	parts   int
	results int // see frame
	args    int // see frame
	steps   int // of patterns
}

// result reserves memory for the result of a term.
func (c *exprCompiler) result() (index int) {
	c.results++
	return c.results - 1
}

func (c *exprCompiler) compile(n ast.Node) (term, error) {
	if c.parts++; c.parts > maxExprParts {
		return term{}, errorAt(n, "the expression has more than %d parts", maxExprParts)
	}
	switch n := n.(type) {
	case *ast.NilNode:
		return literal(value.Value{}), nil
	case *ast.BoolNode:
		return literal(Truth(n.Value)), nil
	case *ast.StringNode:
		return literal(value.Value{Type: value.String, Str: []byte(n.Value)}), nil
	case *ast.IntegerNode:
		return literal(value.Value{Type: value.Int, Num: int64(n.Value)}), nil
	case *ast.FloatNode:
		return literal(c.number(n)), nil
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return c.name(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(n, name.Value, n.Arguments)
		}
		return term{}, errorAt(n, "methods cannot be called here")
	case *ast.ArrayNode:
		return term{}, errorAt(n, "a list is allowed only after `in`")
	default:
		return term{}, errorAt(n, "this part of the Expr language is not supported")
	}
}

// name compiles the name of a field, or a path in the record.
func (c *exprCompiler) name(n ast.Node) (term, error) {
	if id, ok := n.(*ast.IdentifierNode); ok && strings.EqualFold(id.Value, "null") && !c.isField(id.Value) {
		return term{}, errorAt(n, "a null is written nil")
	}
	if c.names != nil {
		return c.featureNamed(n)
	}
	if !c.raw {
		if path, ok := pathOf(n); ok && c.logged != nil && path[0] == EventName && (len(path) > 1 || !c.isField(EventName)) {
			return c.eventField(n, path)
		}
		id, ok := n.(*ast.IdentifierNode)
		if !ok {
			return term{}, errorAt(n, "fields have no parts: declare the part as a field with its own path")
		}
		i, err := c.field(n, id.Value)
		if err != nil {
			return term{}, err
		}
		at := i
		if c.logged != nil {
			at = c.loggedAt(i)
		}
		return term{typ: c.fields[i].Type, scale: c.fields[i].Scale, eval: func(f *frame) *value.Value { return &f.values[at] }}, nil
	}
	path, ok := pathOf(n)
	if !ok {
		return term{}, errorAt(n, "this is not a path in the record: write names with dots, such as user.name, or $env[\"user.name\"] for a name that has them itself")
	}
	i := slices.IndexFunc(c.paths, func(p []string) bool { return slices.Equal(p, path) })
	if i < 0 {
		i = len(c.paths)
		c.paths = append(c.paths, path)
	}
	return term{eval: func(f *frame) *value.Value { return &f.values[i] }}, nil
}

// field finds a field by its name.
func (c *exprCompiler) field(n ast.Node, name string) (int, error) {
	i := slices.IndexFunc(c.fields, func(f Variable) bool { return f.Name == name })
	if i >= 0 {
		return i, nil
	}
	var known []string
	for _, f := range c.fields {
		known = append(known, f.Name)
	}
	return 0, errorAt(n, "%s", spelling.Unknown("field", name, known))
}

// eventField compiles a field of the event being scored, by its path from the event's name on.
func (c *exprCompiler) eventField(n ast.Node, path []string) (term, error) {
	switch {
	case c.fields == nil:
		return term{}, errorAt(n, "%s is the event being scored: name its stream beside the expression, as in {expr: …, stream: transaction}", EventName)
	case len(path) == 1:
		return term{}, errorAt(n, "%s is the event being scored: name one of its fields, such as %s.amount", EventName, EventName)
	case len(path) > 2:
		return term{}, errorAt(n, "fields have no parts: declare the part as a field with its own path")
	}
	i, err := c.field(n, path[1])
	if err != nil {
		return term{}, err
	}
	if !slices.Contains(c.ofEvent, i) {
		c.ofEvent = append(c.ofEvent, i)
	}
	return term{typ: c.fields[i].Type, scale: c.fields[i].Scale, eval: func(f *frame) *value.Value { return &f.event[i] }}, nil
}

// featureNamed compiles the name of a feature, an element of one, a field of a table, or a field of the event being scored.
func (c *exprCompiler) featureNamed(n ast.Node) (term, error) {
	if chain, ok := n.(*ast.ChainNode); ok {
		n = chain.Node
	}
	if member, ok := n.(*ast.MemberNode); ok {
		if m, ok := c.manyBeside(member.Node); ok {
			return c.element(member, m)
		}
	}
	path, ok := pathOf(n)
	switch {
	case ok && path[0] == EventName:
		return c.eventField(n, path)
	case !ok || len(path) > 2:
		if member, isMember := n.(*ast.MemberNode); isMember {
			if _, err := c.compile(member.Node); err != nil {
				return term{}, err
			}
		}
		return term{}, errorAt(n, "only lists and tables have parts")
	case len(path) == 2:
		i, of, err := c.names.Column(path[0], path[1])
		return looked(n, i, of, err)
	}
	if m, ok := c.manyNamed(n); ok {
		return term{}, m.noScalar(n)
	}
	i, of, err := c.names.Feature(path[0])
	return looked(n, i, of, err)
}

// looked is the term for what was found by a name.
func looked(n ast.Node, i int, of Variable, err error) (term, error) {
	switch {
	case errors.Is(err, ErrReported):
		return term{}, err
	case err != nil:
		return term{}, errorAt(n, "%s", err)
	}
	return term{typ: of.Type, scale: of.Scale, eval: func(f *frame) *value.Value { return &f.values[i] }}, nil
}

// pathOf reads a.b, a?.b, a["b"] and $env["b"].
func pathOf(n ast.Node) ([]string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}, n.Value != allNames
	case *ast.ChainNode:
		return pathOf(n.Node)
	case *ast.MemberNode:
		name, ok := n.Property.(*ast.StringNode)
		if !ok {
			return nil, false
		}
		n.Optional = false
		if all, ok := n.Node.(*ast.IdentifierNode); ok && all.Value == allNames {
			return []string{name.Value}, true
		}
		path, ok := pathOf(n.Node)
		return append(path, name.Value), ok
	}
	return nil, false
}

// allNames are all names together, in the Expr language.
const allNames = "$env"

func (c *exprCompiler) conditional(n *ast.ConditionalNode) (term, error) {
	n.Ternary = true
	terms, err := c.compileAll(n.Cond, n.Exp1, n.Exp2)
	if err != nil {
		return term{}, err
	}
	cond, yes, no := terms[0], terms[1], terms[2]
	if !assignable(cond.typ, value.Bool) {
		return term{}, errorAt(n.Cond, "a condition must be a bool, not %s", WithArticle(cond.typ))
	}
	typ, ok := common(yes.typ, no.typ)
	if !ok {
		return term{}, errorAt(n.Exp2, "one result is %s, the other %s", WithArticle(yes.typ), WithArticle(no.typ))
	}
	return term{typ: typ, scale: max(yes.scale, no.scale), eval: func(f *frame) *value.Value {
		if v := cond.eval(f); v.Type == value.Bool && v.Num != 0 {
			return yes.eval(f)
		}
		return no.eval(f)
	}}, nil
}

func (c *exprCompiler) compileAll(nodes ...ast.Node) ([]term, error) {
	terms := make([]term, len(nodes))
	for i, n := range nodes {
		t, err := c.compile(n)
		if err != nil {
			return nil, err
		}
		terms[i] = t
	}
	return terms, nil
}

// common returns the type that holds values of both types.
func common(a, b value.Type) (value.Type, bool) {
	switch {
	case a == value.Null:
		return b, true
	case assignable(b, a):
		return a, true
	case assignable(a, b):
		return b, true
	}
	return value.Null, false
}
