package expr

import (
	"math"
	"slices"
	"testing"

	"github.com/weir-stream/weir/value"
)

// The stated scale holds every decimal that may result.
func TestExprScale(t *testing.T) {
	for text, want := range map[string]uint8{
		"n": 0, "amount": 2, "-amount": 2, "amount + 0.125": 3, "1 - amount": 2, "amount * amount * 0.5": 5,
		"none ?? amount": 2, "amount ?? 0.125": 3, "ok ? amount : 0.125": 3, "ok ? n : amount": 2,
		"amount * amount * amount * amount * amount * amount * amount * amount * amount * amount": value.MaxScale,
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil || e.Scale() != want {
			t.Errorf("%s: %+v, %v; want %d", text, e, err, want)
		}
	}
}

// Ints and decimals are exact in 128 bits in between; results over a record must fit into 64 in the
// end.
func TestExprIn128Bits(t *testing.T) {
	fields := []Variable{{Name: "n", Type: value.Int}, {Name: "d", Type: value.Decimal, Scale: 18}}
	const greatest = math.MaxInt64
	values := []value.Value{{Type: value.Int, Num: greatest}, {Type: value.Decimal, Scale: 18, Num: greatest}}
	for text, want := range map[string]string{
		"n + n - n":              "9223372036854775807",
		"n * n / n":              "9.223372036854776e+18",
		"n * 3 - n * 2":          "9223372036854775807",
		"0 - n - 1":              "-9223372036854775808",
		"-(0 - n - 1) - 1":       "9223372036854775807",
		"(n * n) % 10":           "9",
		"n % (n * n)":            "9223372036854775807",
		"(n * n) % 0":            "",
		"n * n > n":              "true",
		"n * n == n * n + 1 - 1": "true",
		"n * 2 <= n":             "false",
		"d + d + d - d - d":      "9.223372036854775807",
		"d * 2 > 18":             "true",
		"d * 2 == d + d":         "true",
		"n > d":                  "true",
		"n + d < n * 2":          "true",
		"n + 1":                  "error",
		`substr("a", n * 2 + 3)`: "error", // 64 bits of it are 1
		`substr("a", 1, n + n)`:  "error",
		`split("a", " ", n+n+3)`: "error",
		"int(n / 0.5)":           "error",
		"int(n / -0.5)":          "error",
		"decimal(n / 0.5, 0)":    "error",
		"decimal(d / 0.1, 18)":   "error",
		"decimal(d / 0.1, 0)":    "92",
		"n + d":                  "error",
		"d * d":                  "error", // it has 36 digits after the decimal point
		"n * n * n * n == 1":     "error",
	} {
		e, err := Compile(text, fields, value.Null)
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(values)
		got := string(v.AppendText(nil))
		if err != nil {
			got = "error"
		}
		if got != want || err != nil && err.Error() != "the result of a calculation is too large" {
			t.Errorf("%s is %q, error %v; want %q", text, got, err, want)
		}
	}
}

// Numbers with a point are as exact as they are written, also with more digits than a float holds, and so is their
// canonical text. Others keep the text of a float, which IDs of state are made from.
func TestExprExactNumbers(t *testing.T) {
	for text, want := range map[string][2]string{ // value and canonical text
		"0.123456789012345678":                {"decimal 0.123456789012345678", "0.123456789012345678"},
		".123456789012345678":                 {"decimal 0.123456789012345678", "0.123456789012345678"},
		"-12345678901234567.89":               {"decimal -12345678901234567.89", "-12345678901234567.89"},
		"90_071_992_547_409.93":               {"decimal 90071992547409.93", "90071992547409.93"},
		"12345678901234567.0":                 {"int 12345678901234567", "12345678901234567"},
		"'ä' == 's' ? 1 : 9007199254740993.5": {"decimal 9007199254740993.5", `"ä" == "s" ? 1 : 9007199254740993.5`},
		"0.1":                                 {"decimal 0.1", "0.1"},
		"1e6":                                 {"int 1000000", "1e+06"},
		"0.1234567890123456789":               {"decimal 0.12345678901234568", "0.12345678901234568"},
		"12345678901234567890.5":              {"float 1.2345678901234567e+19", "1.2345678901234567e+19"},
	} {
		for _, text := range []string{text, want[1]} {
			e, err := Compile(text, nil, value.Null)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if v, err := e.Eval(nil); err != nil || typed(v) != want[0] || e.Text != want[1] {
				t.Errorf("%s is %s, %v, with the canonical text %s; want %s, %s", text, typed(v), err, e.Text, want[0], want[1])
			}
		}
	}
}

// Over features a part that cannot be computed is null, as every null in an expression, and not the end of the whole.
func TestExprOverFeaturesOverflow(t *testing.T) {
	features := named{{Name: "n", Type: value.Int}, {Name: "s", Type: value.String}}
	values := []value.Value{{Type: value.Int, Num: math.MaxInt64}, {Type: value.String, Str: make([]byte, maxText/2+1)}}
	for text, want := range map[string]string{
		"n * n * n":                       "",
		"(n * n * n) ?? 7":                "7",
		"n * n * n == nil":                "true",
		"n * n * n > 0 or n > 0":          "true",
		"n * n * n > 0 ? 1 : 2":           "2",
		"(n * 1e308 * 1e308) ?? 7":        "7",
		"(n * 1e-10 * 0.0000000001) ?? 7": "7", // it has 20 digits after the decimal point
		"(n / 1e-308) ?? 7":               "7",
		"int(n / 1e-3) ?? 7":              "7",
		`split("a", " ", n+n+3) ?? "b"`:   "b",
		"int(n / -1e-3) ?? 7":             "7",
		"decimal(n / 1e-3, 2) ?? 7":       "7",
		"n * n - n * n + n":               "9223372036854775807",
		"n < 0 ? n * n * n : n - n - 1.5": "-1.5",
		`s + s == nil ? upper("a") : ""`:  "A",
	} {
		compiled, err := CompileOver(text, features, nil, value.Null)
		if err != nil {
			t.Fatal(text, err)
		}
		for _, e := range []*Expr{compiled, compiled.Clone()} {
			v, err := e.Eval(values)
			if got := string(v.AppendText(nil)); got != want || err != nil {
				t.Errorf("%s is %q, error %v; want %q", text, got, err, want)
			}
			// What is too large in a part that decides nothing is of no concern.
			if beyond := !slices.Contains([]string{"n * n - n * n + n", "n < 0 ? n * n * n : n - n - 1.5"}, text); e.Beyond() != beyond {
				t.Errorf("%s: something is too large: %v, want %v", text, e.Beyond(), beyond)
			}
		}
	}
}

// A float field is equal to the number that it was read from, however many digits that has.
func TestExprFloatsEqualTheirText(t *testing.T) {
	fields := []Variable{{Name: "x", Type: value.Float}}
	for text, x := range map[string]float64{
		"0.9222122589217269": 0.9222122589217269, "-0.40380328579570035": -0.40380328579570035, "0.1": 0.1,
	} {
		for _, compare := range []string{"x == ", "x >= ", "x <= "} {
			e, err := Compile(compare+text, fields, value.Bool)
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := e.True([]value.Value{{Type: value.Float, Flt: x}}); !ok || err != nil {
				t.Errorf("%s%s is false for %v, error %v", compare, text, x, err)
			}
		}
	}
}
