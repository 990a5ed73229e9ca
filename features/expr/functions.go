package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// function is a function of the expression language. Its result is null if an argument is, unless it takes nulls.
type function struct {
	// arguments are the names of its arguments, for messages. Those from optional on may be left out; with repeats, the last
	// may be given any number of times.
	arguments string
	optional  int
	repeats   bool
	takes     []value.Type // by argument; Null takes any type. Further arguments have the last type
	nulls     bool         // it is called with nulls

	// gives returns the type of the result for arguments of the types taken, and the greatest scale of a decimal.
	gives func(args []term) (value.Type, uint8, error)
	// prepare returns how the function is computed, with what it needs of arguments that must be literals.
	prepare func(c *exprCompiler, args []term) (apply, error)
}

// apply computes a function. It must not change the arguments. The result may alias them, and the frame's text.
type apply func(f *frame, args []*value.Value) value.Value

// functions are those that expressions may call, by name; docs/expressions.md says what they give.
var functions = func() map[string]function {
	all := map[string]function{}
	for _, of := range []map[string]function{numberFunctions, textFunctions, similarities, timeFunctions, networkFunctions, placeFunctions} {
		maps.Copy(all, of)
	}
	return all
}()

// of returns a function of arguments of given types, with a result of one type.
func of(arguments string, gives value.Type, do apply, takes ...value.Type) function {
	return function{
		arguments: arguments, optional: len(takes), takes: takes,
		gives:   func([]term) (value.Type, uint8, error) { return gives, 0, nil },
		prepare: func(*exprCompiler, []term) (apply, error) { return do, nil },
	}
}

// argumentError is what is wrong with an argument.
type argumentError struct {
	index   int
	message string
}

func (e *argumentError) Error() string { return e.message }

func (c *exprCompiler) call(n ast.Node, name string, nodes []ast.Node) (term, error) {
	fn, ok := functions[name]
	if slices.Contains([]string{"now", "today", "random", "rand"}, strings.ToLower(name)) {
		return term{}, errorAt(n, "there is no %s(): an expression depends on its event alone", name)
	}
	if t, is, err := c.reduced(name, nodes); is {
		return t, err
	}
	if _, reduces := reductions[name]; !ok && reduces {
		if _, err := c.compileAll(nodes...); err != nil {
			return term{}, err // an unknown name, or one that depends on itself
		}
		return term{}, errorAt(n, "%s(x) takes the name of a feature that answers with a list, with counts or with values by category", name)
	}
	if ours := otherFunctions[strings.ToLower(name)]; !ok && ours != "" {
		return term{}, errorAt(n, unknownFunction, name, ours)
	}
	if !ok {
		return term{}, errorAt(n, "%s", spelling.Unknown("function", name, c.functionNames()))
	}
	signature := name + "(" + fn.arguments + ")"
	if len(nodes) < fn.optional || len(nodes) > len(fn.takes) && !fn.repeats {
		return term{}, errorAt(n, "%s is given %s", signature, spelling.Counted(len(nodes), "argument"))
	}
	args, err := c.compileAll(nodes...)
	if err != nil {
		return term{}, err
	}
	for i, arg := range args {
		if takes := fn.takes[min(i, len(fn.takes)-1)]; takes != value.Null && !assignable(arg.typ, takes) {
			return term{}, errorAt(nodes[i], "%s takes %s here, not %s", signature, WithArticle(takes), WithArticle(arg.typ))
		}
	}
	typ, scale, err := fn.gives(args)
	var do apply
	if err == nil {
		do, err = fn.prepare(c, args)
	}
	if err != nil {
		at := n
		if wrong, ok := err.(*argumentError); ok {
			at = nodes[wrong.index]
		}
		return term{}, errorAt(at, "%s: %v", signature, err)
	}
	result, first := c.result(), c.args
	c.args += len(args)
	return term{typ: typ, scale: scale, eval: func(f *frame) *value.Value {
		given := f.args[first : first+len(args)]
		for i := range args {
			v := args[i].eval(f)
			if v.IsNull() {
				if !fn.nulls {
					return &null
				}
			} else if takes := fn.takes[min(i, len(fn.takes)-1)]; takes != value.Null && !assignable(v.Type, takes) {
				return &null // only in a match, whose values have no types before
			}
			given[i] = v
		}
		to := &f.results[result]
		*to = do(f, given)
		return to
	}}, nil
}

// wholeLiteral returns an argument that must be a literal int between two bounds.
func wholeLiteral(args []term, i int, name string, least, greatest int64) (int64, error) {
	if arg := args[i]; arg.literal && arg.typ == value.Int {
		if n := arg.constant().Num; least <= n && n <= greatest {
			return n, nil
		}
	}
	return 0, &argumentError{i, name + " must be a number from " + string(intText(least)) + " to " + string(intText(greatest))}
}

func intText(n int64) []byte {
	v := value.Value{Type: value.Int, Num: n}
	return v.AppendText(nil)
}

// textLiteral returns an argument that must be a literal text.
func textLiteral(args []term, i int, name string) (string, error) {
	if arg := args[i]; arg.literal && arg.typ == value.String {
		return string(arg.constant().Str), nil
	}
	return "", &argumentError{i, name + " must be a literal string"}
}

// maxText bounds the strings that expressions make: derived fields could double them without end.
const maxText = 64 << 10

// held returns the text that was appended to the frame's since start. A text that is too long leaves the room to others.
func (f *frame) held(start int) value.Value {
	if len(f.text) > maxText {
		f.text = f.text[:start]
		return f.fail(errLong)
	}
	return value.Value{Type: value.String, Str: f.text[start:len(f.text):len(f.text)]}
}

func intOf(n int64) value.Value   { return value.Value{Type: value.Int, Num: n} }
func textOf(s []byte) value.Value { return value.Value{Type: value.String, Str: s} }
