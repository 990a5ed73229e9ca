package expr

import (
	"bytes"
	"net/netip"
	"slices"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/expr-lang/expr/ast"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// function is a function of the expression language. All are null for a null.
type function struct {
	takes  value.Type // of the first argument; Null takes any
	option string     // the name of a second argument, a literal int; empty for none
	max    int64      // greatest value of the option; the least is 0
	gives  value.Type
	apply  func(f *frame, v *value.Value, option int) value.Value
}

// functions are those that expressions may call:
//
//	cidr(ip, bits)  the network of an IP address: cidr("10.1.2.3", 24) is
//	                "10.1.2.0/24". Of an IPv4 address, bits above 32 are 32;
//	                null for what is not an IP address
//	lower(s)        in lower case
//	upper(s)        in upper case
//	trim(s)         without white space at its ends
//	len(s)          number of characters
//	string(x)       any value as text
//	hour(t)         hour of the day in UTC, 0 to 23
//	weekday(t)      day of the week in UTC, 1 (Monday) to 7
var functions = map[string]function{
	"cidr":    {takes: value.String, option: "bits", max: 128, gives: value.String, apply: cidr},
	"lower":   {takes: value.String, gives: value.String, apply: mapped(unicode.ToLower)},
	"upper":   {takes: value.String, gives: value.String, apply: mapped(unicode.ToUpper)},
	"trim":    {takes: value.String, gives: value.String, apply: trim},
	"len":     {takes: value.String, gives: value.Int, apply: length},
	"string":  {takes: value.Null, gives: value.String, apply: text},
	"hour":    {takes: value.Timestamp, gives: value.Int, apply: hour},
	"weekday": {takes: value.Timestamp, gives: value.Int, apply: weekday},
}

func (c *exprCompiler) call(n ast.Node, name string, args []ast.Node) (term, error) {
	fn, ok := functions[name]
	if !ok {
		var known []string
		for name := range functions {
			known = append(known, name)
		}
		return term{}, errorAt(n, "%s", spelling.Unknown("function", name, known))
	}
	signature, want := name+"(value)", 1
	if fn.option != "" {
		signature, want = name+"(value, "+fn.option+")", 2
	}
	if len(args) != want {
		return term{}, errorAt(n, "%s takes %d arguments, not %d", signature, want, len(args))
	}
	x, err := c.compile(args[0])
	if err != nil {
		return term{}, err
	}
	if fn.takes != value.Null && !assignable(x.typ, fn.takes) {
		return term{}, errorAt(args[0], "%s takes %s, not %s", signature, WithArticle(fn.takes), WithArticle(x.typ))
	}
	option := 0
	if fn.option != "" {
		o, ok := args[1].(*ast.IntegerNode)
		if !ok || o.Value < 0 || int64(o.Value) > fn.max {
			return term{}, errorAt(args[1], "%s: %s must be a number from 0 to %d", signature, fn.option, fn.max)
		}
		option = o.Value
	}
	result := c.result()
	return term{typ: fn.gives, eval: func(f *frame) *value.Value {
		v := x.eval(f)
		if v.IsNull() || fn.takes != value.Null && v.Type != fn.takes {
			return &null
		}
		to := &f.results[result]
		*to = fn.apply(f, v, option)
		return to
	}}, nil
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

func cidr(f *frame, v *value.Value, bits int) value.Value {
	ip, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(v.Str), len(v.Str)))
	if err != nil || ip.Zone() != "" {
		return value.Value{}
	}
	ip = ip.Unmap()
	network, err := ip.Prefix(min(bits, ip.BitLen()))
	if err != nil {
		return value.Value{}
	}
	start := len(f.text)
	f.text = network.AppendTo(f.text)
	return f.held(start)
}

func mapped(mapping func(rune) rune) func(*frame, *value.Value, int) value.Value {
	return func(f *frame, v *value.Value, _ int) value.Value {
		start := len(f.text)
		f.text = slices.Grow(f.text, len(v.Str))
		for s := v.Str; len(s) > 0; {
			r, size := utf8.DecodeRune(s)
			f.text = utf8.AppendRune(f.text, mapping(r))
			s = s[size:]
		}
		return f.held(start)
	}
}

func trim(_ *frame, v *value.Value, _ int) value.Value {
	return value.Value{Type: value.String, Str: bytes.TrimSpace(v.Str)}
}

func length(_ *frame, v *value.Value, _ int) value.Value {
	return value.Value{Type: value.Int, Num: int64(utf8.RuneCount(v.Str))}
}

func text(f *frame, v *value.Value, _ int) value.Value {
	start := len(f.text)
	f.text = v.AppendText(f.text)
	return f.held(start)
}

func hour(_ *frame, v *value.Value, _ int) value.Value {
	hours := state.FloorDiv(v.Num, 3_600_000)
	return value.Value{Type: value.Int, Num: hours - 24*state.FloorDiv(hours, 24)}
}

func weekday(_ *frame, v *value.Value, _ int) value.Value {
	days := state.FloorDiv(v.Num, 86_400_000) + 3 // the first of 1970 was a Thursday
	return value.Value{Type: value.Int, Num: days - 7*state.FloorDiv(days, 7) + 1}
}
