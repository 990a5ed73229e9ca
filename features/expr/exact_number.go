package expr

import (
	"encoding/json"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-stream/weir/value"
)

// number returns the number that is written. The parser knows numbers with a point as floats only.
func (c *exprCompiler) number(n *ast.FloatNode) value.Value {
	at := n.Location()
	text := strings.ReplaceAll(string(c.source[at.From:at.To]), "_", "")
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	if number, ok := value.ParseNumber([]byte(text)); ok {
		if v, ok := number.Decimal(); ok {
			return v
		}
	}
	return value.DecimalLiteral(n.Value)
}

// exactNumbers replaces the numbers in a compiled tree that have more digits than a float holds, for the canonical
// text. Others stay as they are, and so do the IDs of state that are made from that text.
type exactNumbers struct{ *exprCompiler }

// Visit implements ast.Visitor.
func (e exactNumbers) Visit(n *ast.Node) {
	float, ok := (*n).(*ast.FloatNode)
	if !ok {
		return
	}
	exact, rounded := e.number(float), value.DecimalLiteral(float.Value)
	if exact.Num != rounded.Num || exact.Scale != rounded.Scale {
		ast.Patch(n, &ast.ConstantNode{Value: json.Number(exact.AppendText(nil))})
	}
}
