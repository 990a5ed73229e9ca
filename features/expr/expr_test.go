package expr

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

var exprFields = []Variable{
	{Name: "status", Type: value.String},
	{Name: "other", Type: value.String},
	{Name: "n", Type: value.Int},
	{Name: "amount", Type: value.Decimal, Scale: 2},
	{Name: "score", Type: value.Float},
	{Name: "ok", Type: value.Bool},
	{Name: "at", Type: value.Timestamp},
	{Name: "place", Type: value.Location},
	{Name: "ip", Type: value.String},
	{Name: "none", Type: value.Int},
	{Name: "nobool", Type: value.Bool},
	{Name: "big", Type: value.Int},
}

func exprValues() []value.Value {
	return []value.Value{
		{Type: value.String, Str: []byte("approved")}, {}, {Type: value.Int, Num: 7}, {Type: value.Decimal, Num: 10010, Scale: 2},
		{Type: value.Float, Flt: 0.1}, Truth(true),
		{Type: value.Timestamp, Num: 1_700_000_000_000}, {Type: value.Location, Flt: 1, Lon: 2},
		{Type: value.String, Str: []byte("10.1.2.3")}, {}, {}, {Type: value.Int, Num: math.MaxInt64},
	}
}

// typed is a value as the tests write it.
func typed(v value.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Type.String() + " " + string(v.AppendText(nil))
}

func TestExpr(t *testing.T) {
	for text, want := range map[string]string{
		// comparisons
		`status == "approved"`:          "bool true",
		`status != 'approved'`:          "bool false",
		`status > "a" and status < "b"`: "bool true",
		`n == 7`:                        "bool true",
		`n > 7`:                         "bool false",
		`1 < n < 8`:                     "bool true",
		`ok`:                            "bool true",
		`ok == false`:                   "bool false",
		`not ok`:                        "bool false",
		`at >= 1700000000000`:           "bool true",
		`at < 1700000000000`:            "bool false",
		// decimals are exact
		`amount == 100.10`:                 "bool true",
		`amount > 100.10`:                  "bool false",
		`amount > 100.0999999999`:          "bool true",
		`amount < 100.1000000001`:          "bool true",
		`amount >= 100`:                    "bool true",
		`amount < 1e17`:                    "bool true",
		`amount > -1e17`:                   "bool true",
		`big > 0.5 and big < 1e30`:         "bool true",
		`big > 9223372036854775806`:        "bool true",
		`score == 0.1`:                     "bool true",
		`amount + 0.2 == 100.3`:            "bool true",
		`0.1 + 0.2 == 0.3`:                 "bool true",
		`amount * amount`:                  "decimal 10020.01",
		`amount - 1`:                       "decimal 99.1",
		`-amount`:                          "decimal -100.1",
		`+n`:                               "int 7",
		`n / 2`:                            "float 3.5",
		`0.3 / 0.1`:                        "float 3",
		`amount / 1001`:                    "float 0.1",
		`-1.1 / big`:                       "float -1.192622389734055e-19",
		`score / 0.1`:                      "float 1",
		`n % 4`:                            "int 3",
		`big % -1`:                         "int 0",
		`score * 2`:                        "float 0.2",
		`score * -0.0`:                     "float 0",
		`amount * 0.0000000000000001 == 0`: "bool false",
		// nulls
		`none == 7`:                      "bool false",
		`none != 7`:                      "bool false",
		`not (none == 7)`:                "bool false",
		`not nobool`:                     "bool false",
		`nobool or ok`:                   "bool true",
		`ok or nobool`:                   "bool true",
		`nobool and ok`:                  "bool false",
		`not (nobool and not ok)`:        "bool true",
		`not (not ok and nobool)`:        "bool true",
		`not (ok and nobool)`:            "bool false",
		`none in [1, 2]`:                 "bool false",
		`none not in [1, 2]`:             "bool false",
		`none in 1..3`:                   "bool false",
		`none not in 1..3`:               "bool false",
		`other contains "a"`:             "bool false",
		`not (other contains "a")`:       "bool false",
		`other matches "a"`:              "bool false",
		`none == nil`:                    "bool true",
		`nil == none`:                    "bool true",
		`none != nil`:                    "bool false",
		`n != nil`:                       "bool true",
		`place == nil`:                   "bool false",
		`none < nil`:                     "bool false",
		`none ?? 3`:                      "int 3",
		`n ?? 3`:                         "int 7",
		`none + 1`:                       "null",
		`-none`:                          "null",
		`lower(other)`:                   "null",
		`other + "a"`:                    "null",
		`n / 0`:                          "null",
		`n % 0`:                          "null",
		`amount / none`:                  "null",
		`nobool ? 1 : 2`:                 "int 2",
		`n > 5 ? "many" : nil`:           "string many",
		`n > 9 ? "many" : nil`:           "null",
		`if n > 5 {"many"} else {"few"}`: "string many",
		`n > 5 ? n : 0.5`:                "int 7",
		`(none == 7 or none == nil) && !(n == 8) || false`: "bool true",
		// strings
		`status contains "pro"`:                 "bool true",
		`status startsWith "app"`:               "bool true",
		`status endsWith "app"`:                 "bool false",
		`status matches "^app.*d$"`:             "bool true",
		`status in ["declined", "approved"]`:    "bool true",
		`status not in ["declined"]`:            "bool true",
		`n in [1, 7.0]`:                         "bool true",
		`n in 1..7`:                             "bool true",
		`n in -3..6`:                            "bool false",
		`amount in 100..101`:                    "bool true",
		`upper(status) + "|" + lower("Ä")`:      "string APPROVED|ä",
		`trim("  a ") + string(amount)`:         "string a100.1",
		`string(n) + string(ok) + string(at)`:   "string 7true1700000000000",
		`len("äb")`:                             "int 2",
		`hour(at)`:                              "int 22",
		`weekday(at)`:                           "int 2",
		`cidr(ip, 24)`:                          "string 10.1.2.0/24",
		`cidr(ip, 32)`:                          "string 10.1.2.3/32",
		`cidr("::ffff:10.1.2.3", 24)`:           "string 10.1.2.0/24",
		`cidr("fe80::1%eth0", 24)`:              "null",
		`cidr("10.1.2", 24)`:                    "null",
		`cidr(other, 24)`:                       "null",
		`cidr(ip, 24) == "10.1.2.0/24"`:         "bool true",
		`lower(upper(status)) == lower(status)`: "bool true",
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, e := range []*Expr{e, e.Clone()} {
			got, err := e.Eval(exprValues())
			if e.root.typ == value.Bool { // as a filter
				holds, _ := e.True(exprValues())
				got = Truth(holds)
			}
			if err != nil || typed(got) != want {
				t.Errorf("%s = %s, error %v; want %s", text, typed(got), err, want)
			}
		}
		again, err := Compile(e.Text, exprFields, value.Null)
		if v, _ := e.Eval(exprValues()); v.Scale > e.Scale() {
			t.Errorf("%s: the result has scale %d, more than the stated %d", text, v.Scale, e.Scale())
		}
		if err != nil || again.Text != e.Text {
			t.Errorf("%s: the canonical form %s has another canonical form, or an error: %v", text, e.Text, err)
		}
	}
}

func TestExprCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"  n==1":                     "n == 1",
		"(n == 1) && !(ok) || false": "(n == 1 and not ok) or false",
		"n == 1 and not ok or false": "(n == 1 and not ok) or false",
		"status == 'a' // why":       `status == "a"`,
		"if ok {1} else {2}":         "ok ? 1 : 2",
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil || e.Text != want {
			t.Errorf("%s: %+v, %v; want %s", text, e, err, want)
		}
	}
}

func TestExprWants(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  value.Type
		value string
	}{
		{"n", value.Float, "float 7"},
		{"n", value.Decimal, "decimal 7"},
		{"amount", value.Float, "float 100.1"},
		{"none", value.Float, "null"},
		{"none == 1", value.Bool, "null"},
	} {
		e, err := Compile(c.text, exprFields, c.want)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := e.Eval(exprValues()); err != nil || typed(v) != c.value {
			t.Errorf("%s as %s: %s, %v; want %s", c.text, c.want, typed(v), err, c.value)
		}
	}
}

func TestExprErrors(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    value.Type
		column  int
		message string
	}{
		{`n > 1 and statu == "a"`, value.Bool, 11, `unknown field "statu"; did you mean "status"?`},
		{`status == approved`, value.Bool, 11, `unknown field "approved"; known: amount, at, big, ip, n, nobool, none, ok, other, place, score, status; if a string is meant, write "approved"`},
		{`status == statu`, value.Bool, 11, `unknown field "statu"; did you mean "status"?`},
		{`lowr(status)`, value.String, 1, `unknown function "lowr"; did you mean "lower"?`},
		{`now() > at`, value.Bool, 1, "there is no now(): an expression depends on its event alone"},
		{`status == 5`, value.Bool, 8, "`==` is not allowed between a string and an int"},
		{`ok < false`, value.Bool, 4, "`<` is not allowed between a bool and a bool"},
		{`place == place`, value.Bool, 7, "`==` is not allowed between a location and a location"},
		{`n and ok`, value.Bool, 3, "`and` is not allowed between an int and a bool"},
		{`ok ?? n`, value.Null, 4, "`??` is not allowed between a bool and an int"},
		{`n contains "a"`, value.Bool, 3, "`contains` is not allowed between an int and a string"},
		{`status + n`, value.Null, 8, "`+` is not allowed between a string and an int"},
		{`status - n`, value.Null, 8, "`-` is not allowed between a string and an int"},
		{`amount % 2`, value.Null, 8, "`%` is not allowed between a decimal and an int"},
		{`n ** 2`, value.Null, 3, "the operator `**` is not supported: a power is written pow(x, y)"},
		{`n ^ 2 > 4`, value.Bool, 3, "the operator `^` is not supported: a power is written pow(x, y)"},
		{`IF(ok, 1, 2)`, value.Null, 1, `unknown function "IF": write c ? a : b`},
		{`if(n > 3, 1, 2)`, value.Null, 1, `unknown function "if": write c ? a : b`},
		{`"ä" == status and if(n in [1, 2], if(ok, true, ok), true)`, value.Bool, 19, `unknown function "if": write c ? a : b`},
		{`abs(if(ok, 1, 2))`, value.Null, 5, `unknown function "if": write c ? a : b`},
		{`not if(status == "(", ok, ok)`, value.Bool, 5, `unknown function "if": write c ? a : b`},
		{`if(n in (1, 2), 1, 2)`, value.Null, 11, `unexpected ",": a list, which stands after in, is written ["a", "b"]`},
		{`if n in (1, 2) {1} else {2}`, value.Null, 11, `unexpected ",": a list, which stands after in, is written ["a", "b"]`},
		{`ifnull(n, 0)`, value.Null, 1, `unknown function "ifnull": write coalesce`},
		{`Power(n, 2)`, value.Null, 1, `unknown function "Power": write pow`},
		{`NOT (n > 1)`, value.Bool, 1, `unknown function "NOT": write not x, in lower case`},
		{`COALESCE(n, 0)`, value.Null, 1, `unknown function "COALESCE"; did you mean "coalesce"?`},
		{`CASE WHEN ok THEN 1 ELSE 0 END`, value.Null, 6, `unexpected "WHEN": a choice is written c ? a : b`},
		{`CAST(n AS FLOAT)`, value.Null, 8, `unexpected "AS": a value of another type is written int(x), float(x), decimal(x, 2) or string(x)`},
		{`status in ("a", "b")`, value.Bool, 15, `unexpected ",": a list, which stands after in, is written ["a", "b"]`},
		{`"ä" <> status`, value.Bool, 5, `unexpected "<>": inequality is written !=`},
		{`status == null`, value.Bool, 11, `a null is written nil; if a string is meant, write "null"`},
		{`NULL != n`, value.Bool, 1, "a null is written nil"},
		{`not n`, value.Bool, 1, "`not` takes a bool, not an int"},
		{`-status`, value.Null, 1, "`-` takes a number, not a string"},
		{`n ? 1 : 2`, value.Null, 1, "a condition must be a bool, not an int"},
		{`ok ? 1 : "a"`, value.Null, 10, "one result is an int, the other a string"},
		{`n matches "a"`, value.Bool, 1, "`matches` takes a string, not an int"},
		{`status matches status`, value.Bool, 16, "the pattern of `matches` must be a literal string"},
		{`status matches "("`, value.Bool, 16, "error parsing regexp: missing closing ): `(`"},
		{`n in status`, value.Bool, 6, "`in` takes a list of literals or a range"},
		{`n in [n]`, value.Bool, 7, "`in` takes literals only"},
		{`n in ["a"]`, value.Bool, 7, "an int is never equal to a string"},
		{`[1]`, value.Null, 1, "a list is allowed only after `in`"},
		{`{a: 1}`, value.Null, 1, "this part of the Expr language is not supported"},
		{`status.length`, value.Null, 8, "fields have no parts: declare the part as a field with its own path"},
		{`status.len()`, value.Null, 8, "methods cannot be called here"},
		{`n`, value.Bool, 1, "the expression must be a bool, not an int"},
		{`n / 2`, value.Decimal, 3, "the expression must be a decimal, not a float"},
		{`n >`, value.Bool, 3, "the expression ends too early: a value, a name or a closing bracket is missing"},
		{`(ok`, value.Bool, 3, "the expression ends too early: a value, a name or a closing bracket is missing"},
		{` `, value.Bool, 1, "the expression is empty"},
		{`ok status == "a"`, value.Bool, 4, `unexpected "status": an operator such as ==, and, or is missing before it`},
		{`ok AND ok`, value.Bool, 4, `unexpected "AND": operators are written in lower case`},
		{`status NOT IN ["a"]`, value.Bool, 8, `unexpected "NOT": operators are written in lower case`},
		{`status is null`, value.Bool, 8, `unexpected "is": a null is asked for by == nil, any other value by != nil`},
		{`status LIKE "a%"`, value.Bool, 8, `unexpected "LIKE": use contains, startsWith, endsWith or matches`},
		{`n between 1 and 8`, value.Bool, 3, `unexpected "between": a range is written 1 <= n <= 8`},
		{`ok)`, value.Bool, 3, `unexpected ")": nothing that it closes is open, or a value is missing before it`},
		{`&& ok`, value.Bool, 1, `unexpected "&&": an operator stands between two values`},
		{`n == 99999999999999999999`, value.Bool, 25, "the number is too large"},
		{`n == 1e999`, value.Bool, 10, "the number is too large"},
		{`n == 0x`, value.Bool, 7, "a number is written as 12 or 0.5"},
		{`n == 5e`, value.Bool, 7, "a number is written as 12 or 0.5"},
		{`n == 1 /* one`, value.Bool, 14, "a comment that begins with /* must end with */"},
		{`status == "\d"`, value.Bool, 13, `unknown escape in text: write a backslash as \\`},
		{`n ?? 1 and ok`, value.Bool, 8, "?? cannot be used beside another operator: put one of the two in parentheses"},
		{`status = "approved"`, value.Bool, 8, `unexpected "=": equality is written ==`},
		{`n > "`, value.Bool, 6, "text that begins with a quote must end with the same quote"},
		{`"ä" > statu`, value.Bool, 7, `unknown field "statu"; did you mean "status"?`},
		{strings.Repeat("(", 40) + "ok" + strings.Repeat(" ?: ok)", 40), value.Bool, 47, "the expression has more than 1024 parts"},
		{strings.Repeat("'"+strings.Repeat("a", 400)+"' < ", 7) + "'a'", value.Bool, 1, "the expression is longer than 4096 bytes"},
		{"\xff", value.Bool, 1, "the expression is not valid UTF-8"},
		{strings.Repeat("(", maxExprLength+1), value.Bool, 1, "the expression is longer than 4096 bytes"},
	} {
		_, err := Compile(c.text, exprFields, c.want)
		var e *Error
		if !errors.As(err, &e) || e.Column != c.column || e.Message != c.message {
			t.Errorf("%s: %#v; want column %d: %s", c.text, err, c.column, c.message)
		}
	}
}

// No function is known by the name that it has elsewhere, and what is to be written instead exists.
func TestNamesOfOtherLanguages(t *testing.T) {
	for theirs, ours := range otherFunctions {
		if _, ok := functions[theirs]; ok {
			t.Errorf("%s is a function", theirs)
		}
		if _, reduces := reductions[theirs]; reduces {
			t.Errorf("%s is a function", theirs)
		}
		if _, ok := functions[ours]; !ok && regexp.MustCompile(`^\w+$`).MatchString(ours) {
			t.Errorf("%s: there is no %s", theirs, ours)
		}
		if theirs != strings.ToLower(theirs) {
			t.Errorf("%s is never found", theirs)
		}
	}
}

func TestExprFails(t *testing.T) {
	for text, want := range map[string]string{
		`big + 1`:               ErrOverflow.Error(),
		`-big - 2`:              ErrOverflow.Error(),
		`big * 2`:               ErrOverflow.Error(),
		`big + 0.5`:             ErrOverflow.Error(),
		`score * 1e308 * 1e308`: ErrOverflow.Error(),
		`-(-big - 1)`:           ErrOverflow.Error(),
		`0.5 + (big + 1)`:       ErrOverflow.Error(),
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Fatal(text, err)
		}
		if v, err := e.Eval(exprValues()); err == nil || err.Error() != want {
			t.Errorf("%s = %s, error %v; want the error %s", text, typed(v), err, want)
		}
	}
}

func TestExprBoundsText(t *testing.T) {
	e, err := Compile(`status + status`, exprFields, value.String)
	if err != nil {
		t.Fatal(err)
	}
	values := exprValues()
	values[0] = value.Value{Type: value.String, Str: []byte(strings.Repeat("a", maxText/2+1))}
	if _, err := e.Eval(values); !errors.Is(err, errLong) {
		t.Errorf("err = %v, want %v", err, errLong)
	}
}

// What a search may take depends on the steps of its pattern and the length of the text, which whoever writes events chooses.
func TestSearchesAreBounded(t *testing.T) {
	for _, c := range []struct {
		pattern string
		reads   int
		err     string
	}{
		{`[a-z]{1,64}@mail`, 29850, "a text is longer than the 29850 bytes that a pattern of 134 steps searches"},
		{`bot`, 800_000, "a text is longer than the 800000 bytes that a pattern of 5 steps searches"},
		{`^\\pL{2,50}$`, 39215, "a text is longer than the 39215 bytes that a pattern of 102 steps searches"},
	} {
		for of, found := range map[string]string{`status matches "%s"`: "bool false", `extract(status, "%s") ?? "none"`: "string none"} {
			text := fmt.Sprintf(of, c.pattern)
			e, err := Compile(text, exprFields, value.Null)
			if err != nil {
				t.Fatal(err)
			}
			over, err := CompileOver(text, named{{Name: "status", Type: value.String}}, nil, value.Null)
			if err != nil {
				t.Fatal(err)
			}
			values := exprValues()
			values[0].Str = []byte(strings.Repeat("1", c.reads))
			for _, e := range []*Expr{e, over} {
				if v, err := e.Eval(values); typed(v) != found || err != nil || e.Beyond() {
					t.Errorf("%s of %d bytes = %s, %v; want %s", text, c.reads, typed(v), err, found)
				}
			}
			values[0].Str = append(values[0].Str, '1')
			if v, err := e.Eval(values); fmt.Sprint(err) != c.err || !v.IsNull() {
				t.Errorf("%s of %d bytes = %s, %v; want %s", text, c.reads+1, typed(v), err, c.err)
			}
			if v, err := over.Eval(values); err != nil || !over.Beyond() || v.Type == value.Bool {
				t.Errorf("%s of %d bytes over features = %s, %v; want null", text, c.reads+1, typed(v), err)
			}
		}
	}
}

// Texts that are too long for the result are not processed to their end.
func TestLongTextsEndEarly(t *testing.T) {
	for text, want := range map[string]error{
		`lower(status)`: errLong, `upper(status)`: errLong, `email_domain(status)`: errLong, `replace(status, "b", "c")`: errLong, `normalize(status)`: errNormalized,
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Fatal(err)
		}
		values := exprValues()
		values[0].Str = []byte("b@" + strings.Repeat("\xff", 1<<20))
		if v, err := e.Eval(values); !errors.Is(err, want) || !v.IsNull() {
			t.Errorf("%s: %s, error %v; want %v", text, typed(v), err, want)
		}
		if n := cap(e.frame.text); n > 2<<20 && text != `replace(status, "b", "c")` {
			t.Errorf("%s: it keeps %d bytes", text, n)
		}
	}
	e, err := Compile(`normalize(status)`, exprFields, value.Null)
	if err != nil {
		t.Fatal(err)
	}
	values := exprValues()
	values[0].Str = []byte(strings.Repeat(" A", maxText/2))
	if v, err := e.Eval(values); err != nil || len(v.Str) != maxText-1 {
		t.Errorf("%d bytes, error %v", len(v.Str), err)
	}
}

func BenchmarkExpr(b *testing.B) {
	for _, text := range []string{
		`status == "approved"`, `status == "approved" and amount > 100.05`, `status in ["a", "b", "approved"]`, `cidr(ip, 24)`,
		`round(score, 2)`,
	} {
		b.Run(text, func(b *testing.B) {
			e, err := Compile(text, exprFields, value.Null)
			if err != nil {
				b.Fatal(err)
			}
			values := exprValues()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Eval(values); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestExprAllocatesNothing(t *testing.T) {
	e, err := Compile(`status == "approved" and amount > 1.5 and cidr(ip, 24) == "10.1.2.0/24"`, exprFields, value.Bool)
	if err != nil {
		t.Fatal(err)
	}
	values := exprValues()
	if n := testing.AllocsPerRun(100, func() {
		if ok, err := e.True(values); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzCompileExpr(f *testing.F) {
	for _, s := range []string{
		`status == "approved" and not (n in 1..3)`, `cidr(ip, 24)`, `(ok ? n : nil) ?? 1.50`, `!(a.b?.c["d"] != 'x')`,
		`-n - -1 ?? 2`, `"a" + string(amount * 2.5)`, `status matches "^a"`, `let x = 1; x`, `map([1], #)`, `1 < n <= 3`,
		`'DE' in by ? by?.DE : by["a b"] ?? sum(by)`, `last[-n] + last[0]`, `share_max(bins) > 0.5 or n in top`, `top[n] | max(1)`, `event.n in last`,
	} {
		f.Add(s)
	}
	over := append(named{}, exprFields...)
	elements := make([]Elements, len(exprFields), len(exprFields)+4)
	for _, of := range []struct {
		Variable
		items []aggregate.Item
	}{
		{Variable{Name: "by", Type: value.Int, Shape: aggregate.Categories, Category: value.String}, []aggregate.Item{{Category: textOf([]byte("DE")), Value: intOf(3)}}},
		{Variable{Name: "last", Type: value.String, Shape: aggregate.List}, []aggregate.Item{{Value: textOf([]byte("a"))}, {Value: textOf([]byte("DE"))}}},
		{Variable{Name: "top", Type: value.Int, Shape: aggregate.Counts}, []aggregate.Item{{Value: intOf(7), Count: 2}}},
		{Variable{Name: "bins", Type: value.Decimal, Shape: aggregate.Bins}, []aggregate.Item{{Count: 2}, {Count: 3}}},
	} {
		over, elements = append(over, of.Variable), append(elements, Elements{Items: of.items})
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, compile := range []func(string) (*Expr, error){
			CompileMatch,
			func(s string) (*Expr, error) { return Compile(s, exprFields, value.Null) },
			func(s string) (*Expr, error) { return CompileOver(s, over, exprFields, value.Null) },
		} {
			e, err := compile(text)
			if err != nil {
				var ee *Error
				if !errors.As(err, &ee) || ee.Column < 1 || ee.Message == "" || strings.Contains(ee.Message, "\n") {
					t.Fatalf("%q: unexpected error %#v", text, err)
				}
				continue
			}
			values := exprValues()
			for len(values) < max(len(e.paths), len(over)) {
				values = append(values, values[len(values)%12])
			}
			got, gotErr := e.EvalWith(values, elements, exprValues())
			text := typed(got)
			again, err := compile(e.Text)
			if err != nil {
				t.Fatalf("%q: the canonical form %q does not compile: %v", text, e.Text, err)
			}
			if again.Text != e.Text {
				t.Fatalf("%q: the canonical form %q has another canonical form %q", text, e.Text, again.Text)
			}
			v, err := again.EvalWith(values, elements, exprValues())
			if typed(v) != text || (err == nil) != (gotErr == nil) {
				t.Fatalf("%q gives %s, but its canonical form %q gives %s", text, text, e.Text, typed(v))
			}
		}
	})
}

// A short pattern that would take megabytes is refused, and an ordinary one is not.
func TestPatternsAreBounded(t *testing.T) {
	fields := []Variable{{Name: "status", Type: value.String}}
	for pattern, refused := range map[string]bool{
		`^\\pL{2,50}$`: false, `^[a-z0-9._-]{1,200}$`: false, `(a{9}){9}`: false, `^.{1000}$`: false, "": false,
		`^\\pL{1000}$`: true, `(?i)(\\pL\\pN{2}){300}`: true, `(\\pL{30}){30}`: true, `\\pL{0,1000}`: true,
	} {
		_, err := Compile(`status matches "`+pattern+`"`, fields, value.Bool)
		const want = "the pattern has more than 100000 steps: repeat less in it"
		_, extract := Compile(`extract(status, "`+pattern+`") == "a"`, fields, value.Bool)
		if refused && (extract == nil || !strings.HasSuffix(extract.Error(), want)) || !refused && extract != nil {
			t.Errorf("extract of %s: %v", pattern, extract)
		}
		if got := fmt.Sprint(err); refused && got != want || !refused && err != nil {
			t.Errorf("%s: %s", pattern, got)
		}
	}
	for _, text := range []string{"", "a", "abcdefgh", "(?i)abcdefgh", "(abcdefgh){50}", "[a-z]{1,64}@mail", "(a|b?)*c+", "^(a{0,20}){0,50}$", `\bx\B`, `\pL{3}`} {
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		// All programs have two more, which say that it matches, or that it does not.
		if most := 2 + stepsOf(parsed); len(program.Inst) > most {
			t.Errorf("%q has %d steps, more than %d", text, len(program.Inst), most)
		}
	}
	groups := `extract(status, "` + strings.Repeat("(a)", maxGroups)
	if _, err := Compile(groups+`")`, fields, value.String); err != nil {
		t.Error(err)
	}
	_, err := Compile(groups+`(b)")`, fields, value.String)
	const want = "extract(s, pattern[, group]): the pattern has more than 32 groups: write one that is not extracted as (?:…)"
	if fmt.Sprint(err) != want {
		t.Errorf("%v; want %s", err, want)
	}
}
