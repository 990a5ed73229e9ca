package expr

import (
	"errors"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/weir-stream/weir/internal/spelling"
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
	lookup := func(name string) (int, Variable, error) {
		i := slices.IndexFunc(fields, func(f Variable) bool { return f.Name == name })
		switch {
		case i >= 0:
		case strings.Contains(name, " in "):
			return 0, Variable{}, errors.New("`in` takes a list of literals or a range")
		case strings.Contains(name, "."):
			return 0, Variable{}, errors.New("fields have no parts: declare the part as a field with its own path")
		default:
			var known []string
			for _, f := range fields {
				known = append(known, f.Name)
			}
			return 0, Variable{}, errors.New(spelling.Unknown("field", name, known))
		}
		at := slices.Index(c.Fields, i)
		if at < 0 {
			at = len(c.Fields)
			c.Fields = append(c.Fields, i)
		}
		return at, fields[i], nil
	}
	whole, err := CompileOver(text, lookup, fields, value.Bool)
	if err != nil {
		return nil, err
	}
	c.Text, c.Fields = whole.Text, nil
	alone, with, err := separate(whole.Text)
	if err != nil {
		return nil, err
	}
	if alone != "" {
		if c.Alone, err = Compile(alone, fields, value.Bool); err != nil {
			return nil, err
		}
	}
	c.With, err = CompileOver(with, lookup, fields, value.Bool)
	return c, err
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
