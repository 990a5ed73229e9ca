package expr

import (
	"maps"
	"math"
	"math/big"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// Elements are those of a feature whose answer is not a scalar.
type Elements struct {
	Items []aggregate.Item
	Null  bool // it has no value, and so nothing is known of its elements
	Lacks bool // a cap has left some out
}

// many is the name of a feature whose answer is not a scalar. It stands only where its elements are asked for.
type many struct {
	Variable
	index int
}

// element returns the type of the elements, and the most fractional digits of decimals.
func (m many) element() (value.Type, uint8) {
	if m.Shape == aggregate.Counts || m.Shape == aggregate.Bins {
		return value.Int, 0
	}
	return m.Type, m.Scale
}

// key returns the type of what elements are found by; an Int for a position.
func (m many) key() value.Type {
	switch m.Shape {
	case aggregate.Categories:
		return m.Category
	case aggregate.Counts:
		return m.Type
	}
	return value.Int
}

// member returns the type of what may be `in` it.
func (m many) member() value.Type {
	if m.Shape == aggregate.List {
		return m.Type
	}
	return m.key()
}

func (m many) elementOf(i *aggregate.Item) value.Value {
	if m.Shape == aggregate.Counts || m.Shape == aggregate.Bins {
		return intOf(i.Count)
	}
	return i.Value
}

func (m many) memberOf(i *aggregate.Item) *value.Value {
	if m.Shape == aggregate.Categories {
		return &i.Category
	}
	return &i.Value
}

// what says what the feature answers with.
func (m many) what() string {
	return map[aggregate.Shape]string{
		aggregate.List: "a list", aggregate.Counts: "counts by value", aggregate.Bins: "counts by range", aggregate.Categories: "values by category",
	}[m.Shape]
}

// noScalar is the error for the name where a scalar is needed.
func (m many) noScalar(n ast.Node) error {
	index := "0"
	if t := m.key(); t != value.Int {
		index = "KEY"
	}
	return errorAt(n, "feature %q answers with %s: take an element, %s[%s], or len, sum, min, max or share_max of all", m.Name, m.what(), m.Name, index)
}

// manyNamed returns the feature that a node names, if its answer is not a scalar.
func (c *exprCompiler) manyNamed(n ast.Node) (m many, ok bool) {
	path, ok := pathOf(n)
	if !ok || len(path) > 1 || c.names == nil || path[0] == EventName {
		return many{}, false
	}
	i, of, err := c.names.Feature(path[0])
	if err != nil {
		return many{}, false // whoever compiles the name says so
	}
	return many{of, i}, of.Shape != aggregate.Scalar
}

// manyBeside is manyNamed where a table may stand too, which comes first.
func (c *exprCompiler) manyBeside(n ast.Node) (many, bool) {
	if path, ok := pathOf(n); !ok || c.names.IsTable(path[0]) {
		return many{}, false
	}
	return c.manyNamed(n)
}

// element compiles x[position], x[key] and x.key.
func (c *exprCompiler) element(n *ast.MemberNode, m many) (term, error) {
	n.Optional = false
	key, err := c.compile(n.Property)
	if err != nil {
		return term{}, err
	}
	byPosition := m.Shape == aggregate.List || m.Shape == aggregate.Bins
	switch {
	case byPosition && !assignable(key.typ, value.Int):
		return term{}, errorAt(n.Property, "%q answers with %s, whose elements are taken by position, an int from 0 on, not %s", m.Name, m.what(), WithArticle(key.typ))
	case !byPosition && !canCompare("==", key.typ, m.key()):
		return term{}, errorAt(n.Property, "%q answers with %s, whose keys are of type %s, not %s", m.Name, m.what(), m.key(), key.typ)
	}
	typ, scale := m.element()
	result := c.result()
	return term{typ: typ, scale: scale, eval: func(f *frame) *value.Value {
		k := key.eval(f)
		of := &f.elements[m.index]
		if k.IsNull() || of.Null {
			return &null
		}
		var at int
		if byPosition {
			at = positionIn(k, len(of.Items))
		} else {
			at = m.find(of.Items, k)
		}
		if at < 0 {
			return &null
		}
		to := &f.results[result]
		*to = m.elementOf(&of.Items[at])
		return to
	}}, nil
}

// find returns where a member is, -1 for nowhere. A long text may be kept as its beginning and a hash.
func (m many) find(items []aggregate.Item, member *value.Value) int {
	text := value.Sought{Text: member.Str}
	for i := range items {
		of := m.memberOf(&items[i])
		if member.Type == value.String {
			if of.Type == value.String && text.Is(of.Str) {
				return i
			}
		} else if order, ok := compare(member, of); ok && order == 0 {
			return i
		}
	}
	return -1
}

// positionIn returns the position that an int means among n elements: a negative one counts from the end. It is -1 outside.
func positionIn(k *value.Value, n int) int {
	at := k.Num
	if at < 0 {
		at += int64(n)
	}
	if k.Wide() || at < 0 || at >= int64(n) {
		return -1
	}
	return int(at)
}

// member compiles `x in many`.
func (c *exprCompiler) member(n *ast.BinaryNode, m many) (term, error) {
	if m.Shape == aggregate.Bins {
		return term{}, errorAt(n.Right, "%q answers with %s, in which nothing is looked up by `in`", m.Name, m.what())
	}
	x, err := c.compile(n.Left)
	if err != nil {
		return term{}, err
	}
	if !canCompare("==", x.typ, m.member()) {
		return term{}, errorAt(n.Left, "%s is never equal to %s, which %q has", WithArticle(x.typ), WithArticle(m.member()), m.Name)
	}
	return term{typ: value.Bool, eval: func(f *frame) *value.Value {
		v, of := x.eval(f), &f.elements[m.index]
		if v.IsNull() || of.Null {
			return &null
		}
		switch {
		case m.find(of.Items, v) >= 0:
			return &yes
		case of.Lacks:
			return &null
		}
		return &no
	}}, nil
}

// reduction computes one value of all elements.
type reduction struct {
	gives func(m many) (value.Type, uint8)
	// refuses says why it cannot be computed of elements of a type; nil if it can be of all.
	refuses func(value.Type) string
	do      func(f *frame, m many, items []aggregate.Item) value.Value
}

// reductions are functions of the elements of features whose answers are not scalars. Elements are the values of a list or by
// category, or the counts by value or by range:
//
//	len(x)         how many there are
//	sum(x)         their sum; 0 of none
//	min(x), max(x) the least and the greatest; null of none
//	share_max(x)   the greatest divided by the sum, from 0 to 1; null if the sum is 0 or one is negative
//
// All but len are null if an element is.
var reductions = map[string]reduction{
	"len": {
		gives: func(many) (value.Type, uint8) { return value.Int, 0 },
		do:    func(_ *frame, _ many, items []aggregate.Item) value.Value { return intOf(int64(len(items))) },
	},
	"sum":       {gives: many.element, refuses: noNumber, do: sumOf},
	"min":       {gives: many.element, refuses: noOrder, do: extreme(-1)},
	"max":       {gives: many.element, refuses: noOrder, do: extreme(1)},
	"share_max": {gives: func(many) (value.Type, uint8) { return value.Float, 0 }, refuses: noNumber, do: shareOfMax},
}

func noNumber(t value.Type) string {
	if t.Numeric() {
		return ""
	}
	return "numbers are needed"
}

func noOrder(t value.Type) string {
	if t != value.Location {
		return ""
	}
	return "locations have no order"
}

// reduced compiles a reduction of what the only argument names. ok is false if that is a scalar.
func (c *exprCompiler) reduced(name string, nodes []ast.Node) (t term, ok bool, err error) {
	reduce, known := reductions[name]
	if !known || len(nodes) != 1 {
		return term{}, false, nil
	}
	m, ok := c.manyNamed(nodes[0])
	if !ok {
		return term{}, false, nil
	}
	if of, _ := m.element(); reduce.refuses != nil {
		if why := reduce.refuses(of); why != "" {
			return term{}, true, errorAt(nodes[0], "%s(x): the elements of %q are of type %s: %s", name, m.Name, of, why)
		}
	}
	typ, scale := reduce.gives(m)
	result := c.result()
	return term{typ: typ, scale: scale, eval: func(f *frame) *value.Value {
		of := &f.elements[m.index]
		if of.Null {
			return &null
		}
		to := &f.results[result]
		*to = reduce.do(f, m, of.Items)
		return to
	}}, true, nil
}

// functionNames are all functions that an expression may call.
func (c *exprCompiler) functionNames() []string {
	names := slices.Collect(maps.Keys(functions))
	if c.names != nil {
		names = slices.AppendSeq(names, maps.Keys(reductions))
	}
	return names
}

// extreme returns the reduction to the element whose order to each other has a sign.
func extreme(sign int) func(*frame, many, []aggregate.Item) value.Value {
	return func(_ *frame, m many, items []aggregate.Item) (best value.Value) {
		for i := range items {
			v := m.elementOf(&items[i])
			if v.IsNull() {
				return v
			}
			if order, ok := compare(&v, &best); !ok || order == sign {
				best = v
			}
		}
		return best
	}
}

func sumOf(f *frame, m many, items []aggregate.Item) value.Value {
	typ, scale := m.element()
	if typ == value.Float {
		return floatSumOf(f, m, items)
	}
	total := new(big.Int)
	sum, narrow := int64(0), true // as long as 64 bits suffice
	for i := range items {
		v := m.elementOf(&items[i])
		if v.IsNull() {
			return v
		}
		n, ok := value.Rescale(&v, scale)
		if next, fits := value.Plus(sum, n); narrow && ok && fits {
			sum = next
			continue
		}
		if narrow {
			total.SetInt64(sum)
			narrow = false
		}
		total.Add(total, value.RescaleBig(&v, scale))
	}
	if narrow {
		return value.Value{Type: typ, Num: sum, Scale: scale}
	}
	return exactOf(f, typ, scale, total)
}

// floatSumOf is the float nearest to the exact sum, in whatever order the elements are.
func floatSumOf(f *frame, m many, items []aggregate.Item) value.Value {
	var sum value.FloatSum
	for i := range items {
		v := m.elementOf(&items[i])
		if v.IsNull() {
			return v
		}
		sum.Add(v.Float64())
	}
	x := sum.Float()
	if math.IsInf(x, 0) {
		return f.fail(ErrOverflow)
	}
	return value.Value{Type: value.Float, Flt: x + 0}
}

func shareOfMax(f *frame, m many, items []aggregate.Item) value.Value {
	sum, greatest, least := sumOf(f, m, items), extreme(1)(f, m, items), extreme(-1)(f, m, items)
	if sum.IsNull() || greatest.IsNull() || least.Float64() < 0 || sum.Float64() == 0 {
		return value.Value{}
	}
	return value.Value{Type: value.Float, Flt: value.Quotient(&greatest, &sum)}
}
