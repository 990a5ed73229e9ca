package expr

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/weir-stream/weir/value"
)

// Comparison is a filter that compares events with the event being scored. An event passes it if it passes both parts: a
// conjunction is true only if each of its terms is.
type Comparison struct {
	Text string // of the whole, in canonical form
	// Alone has the terms that do not name the event being scored; nil if there are none. It is like a filter of Compile.
	Alone *Expr
	// With has the others. It is evaluated with TrueWith: the values are those of Fields, in their order. What cannot be
	// computed is null, see Beyond.
	With *Expr
	// Fields are the fields of an event that With reads, as indexes.
	Fields []int
}

// NamesEvent reports whether an expression names fields of the event being scored. One that does not compile may name any.
func NamesEvent(text string) bool {
	if len(text) > maxExprLength || !strings.Contains(text, EventName) {
		return false
	}
	tree, err := parser.Parse(text)
	return err == nil && namesEvent(tree.Node)
}

func namesEvent(n ast.Node) bool {
	var names eventNames
	ast.Walk(&n, &names)
	return names.found
}

type eventNames struct{ found bool }

// Visit looks at one part of an expression.
func (v *eventNames) Visit(n *ast.Node) {
	if of, ok := (*n).(*ast.MemberNode); ok {
		path, ok := pathOf(of)
		v.found = v.found || ok && path[0] == EventName
	}
}

// CompileComparison compiles a filter that NamesEvent, over the fields of an event and, as members of EventName, those of the
// event being scored, which is of the same stream. Its error is an *Error.
func CompileComparison(text string, fields []Variable) (*Comparison, error) {
	c := &Comparison{}
	whole, err := compileExpr(text, &exprCompiler{fields: fields, logged: new([]int)}, value.Bool)
	if err != nil {
		return nil, err
	}
	c.Text = whole.Text
	alone, with, err := separate(whole.Text)
	if err != nil {
		return nil, err
	}
	if alone != "" {
		if c.Alone, err = Compile(alone, fields, value.Bool); err != nil {
			return nil, err
		}
	}
	if c.With, err = compileExpr(with, &exprCompiler{fields: fields, logged: &c.Fields}, value.Bool); err != nil {
		return nil, err
	}
	c.With.frame.overFeatures = true
	return c, nil
}

func (c *exprCompiler) isField(name string) bool {
	return slices.ContainsFunc(c.fields, func(f Variable) bool { return f.Name == name })
}

// loggedAt returns the index of a field's value among those that a comparison takes of an event.
func (c *exprCompiler) loggedAt(field int) int {
	at := slices.Index(*c.logged, field)
	if at < 0 {
		at = len(*c.logged)
		*c.logged = append(*c.logged, field)
	}
	return at
}

// separate separates the terms of a conjunction that do not name the event being scored from those that do; empty for none.
func separate(text string) (alone, with string, err error) {
	tree, err := parser.Parse(text)
	if err != nil {
		return "", "", syntaxErrorOf(text, err)
	}
	ast.Walk(&tree.Node, exactNumbers{&exprCompiler{source: []rune(text)}})
	var parts [2]ast.Node
	for _, term := range conjuncts(nil, tree.Node) {
		part := &parts[0]
		if namesEvent(term) {
			part = &parts[1]
		}
		if *part == nil {
			*part = term
		} else {
			*part = &ast.BinaryNode{Operator: "and", Left: *part, Right: term}
		}
	}
	if parts[0] != nil {
		alone = parts[0].String()
	}
	return alone, parts[1].String(), nil
}

// conjuncts appends the terms of a conjunction in canonical form.
func conjuncts(dst []ast.Node, n ast.Node) []ast.Node {
	if and, ok := n.(*ast.BinaryNode); ok && and.Operator == "and" {
		return conjuncts(conjuncts(dst, and.Left), and.Right)
	}
	return append(dst, n)
}
