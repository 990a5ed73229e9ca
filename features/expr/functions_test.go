package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/value"
)

func TestFunctions(t *testing.T) {
	for text, want := range map[string]string{
		// numbers: the type stays, decimals are exact
		`abs(-n)`:                               "int 7",
		`abs(-amount)`:                          "decimal 100.1",
		`abs(-score)`:                           "float 0.1",
		`abs(-big - 1) == big + 1`:              "bool true",
		`round(amount)`:                         "decimal 100",
		`round(100.5)`:                          "decimal 101",
		`round(-100.5)`:                         "decimal -101",
		`round(-100.49)`:                        "decimal -100",
		`round(2.675, 2)`:                       "decimal 2.68",
		`round(amount, 18)`:                     "decimal 100.1",
		`round(n, 2)`:                           "int 7",
		`round(score * 15)`:                     "float 2",
		`round(score / 3, 3)`:                   "float 0.033",
		`round(score * 1e308, 18) > 1e306`:      "bool true",
		`floor(1.9)`:                            "decimal 1",
		`floor(-1.1)`:                           "decimal -2",
		`floor(-score)`:                         "float -1",
		`ceil(1.1)`:                             "decimal 2",
		`ceil(-1.9)`:                            "decimal -1",
		`ceil(-score)`:                          "float 0",
		`floor(2.0)`:                            "int 2",
		`sqrt(n + 2)`:                           "float 3",
		`sqrt(-n)`:                              "null",
		`exp(0)`:                                "float 1",
		`log(1)`:                                "float 0",
		`log(0)`:                                "null",
		`log(float("5e-324"))`:                  "float -744.4400719213812",
		`log(-1)`:                               "null",
		`pow(2, 10)`:                            "float 1024",
		`pow(-8, 0.5)`:                          "null",
		`pow(0, -1)`:                            "null",
		`min(n, amount, 3)`:                     "int 3",
		`max(n, amount, 3)`:                     "decimal 100.1",
		`max(n, score)`:                         "int 7",
		`min(status, "b", "a")`:                 "string a",
		`max(ok, false)`:                        "bool true",
		`min(at, at + 1) == at`:                 "bool true",
		`min(n, none)`:                          "null",
		`coalesce(none, nil, n, 3)`:             "int 7",
		`coalesce(none, nil)`:                   "null",
		`coalesce(other, "x")`:                  "string x",
		`int(amount)`:                           "int 100",
		`int(-1.9)`:                             "int -1",
		`int(score)`:                            "int 0",
		`int(score * 9e19) > 8999999999999999`:  "bool true",
		`int(-float("9223372036854775808"))`:    "int -9223372036854775808",
		`int("1e300")`:                          "null",
		`int("12")`:                             "int 12",
		`int("1e3")`:                            "int 1000",
		`int("1.5")`:                            "null",
		`int("")`:                               "null",
		`int(status)`:                           "null",
		`int(ok)`:                               "int 1",
		`int(at)`:                               "int 1700000000000",
		`int(place)`:                            "null",
		`float("0.5")`:                          "float 0.5",
		`float("NaN")`:                          "null",
		`float("1e999")`:                        "null",
		`float(amount)`:                         "float 100.1",
		`float(ok)`:                             "null",
		`decimal("0.335", 2)`:                   "decimal 0.34",
		`decimal("-0.335", 2)`:                  "decimal -0.34",
		`decimal("1e-1000000", 2)`:              "decimal 0",
		`decimal("1e1000000", 2)`:               "null",
		`decimal("0.333333333333333333333", 2)`: "decimal 0.33",
		`decimal("99999999999999999999", 0)`:    "null",
		`decimal("x", 0)`:                       "null",
		`decimal(score / 3, 4)`:                 "decimal 0.0333",
		`decimal(n, 2)`:                         "decimal 7",
		`decimal(amount, 1)`:                    "decimal 100.1",
		`decimal(ok, 1)`:                        "null",
		// texts
		`substr("äbc", 1, 2)`:                         "string äb",
		`substr("äbc", 2)`:                            "string bc",
		`substr("äbc", -2)`:                           "string bc",
		`substr("äbc", -2, 1)`:                        "string b",
		`substr("äbc", 0, 2)`:                         "string ä",
		`substr("äbc", 9)`:                            "string ",
		`substr("äbc", -9, 9)`:                        "string äbc",
		`substr("abc", 2, -1)`:                        "null",
		`substr("abc", 2, big)`:                       "string bc",
		`substr("", 1, 1)`:                            "string ",
		`split("a-b--c", "-", 2)`:                     "string b",
		`split("a-b--c", "-", 3)`:                     "string ",
		`split("a-b--c", "-", -1)`:                    "string c",
		`split("a-b--c", "-", 5)`:                     "null",
		`split("a-b--c", "-", -5)`:                    "null",
		`split("a", "-", 0)`:                          "null",
		`split("", "-", 1)`:                           "string ",
		`split("ab", "", 1)`:                          "null",
		`replace("a.b.c", ".", "")`:                   "string abc",
		`replace("aaa", "aa", "b")`:                   "string ba",
		`replace("abc", "", "x")`:                     "string abc",
		`extract("IBAN DE89 3704", "([A-Z]{2})\\d")`:  "string DE",
		`extract("a1b22", "\\d+")`:                    "string 1",
		`extract("k=v", "(\\w)=(\\w)", 2)`:            "string v",
		`extract("k=v", "(\\w)=(\\w)", 0)`:            "string k=v",
		`extract("k=", "(\\w)=(\\w)?", 2)`:            "null",
		`extract("abc", "x")`:                         "null",
		`email_domain(" a@b@Mail.Example.COM ")`:      "string mail.example.com",
		`email_domain("a@")`:                          "null",
		`email_domain("@b")`:                          "null",
		`email_domain(" @gmail.com")`:                 "null",
		`email_domain("a")`:                           "null",
		`email_domain("")`:                            "null",
		`normalize("  Müller \t STRASSE ")`:           "string müller strasse",
		`normalize("u\u0308") == normalize("Ü")`:      "bool true",
		`normalize("Straße") == normalize("STRASSE")`: "bool true",
		`normalize("")`:                               "string ",
		`hash("abc")`:                                 "string ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		// similarity
		`levenshtein("kitten", "sitting")`:            "int 3",
		`levenshtein("", "äö")`:                       "int 2",
		`levenshtein("", "")`:                         "int 0",
		`round(jaro_winkler("MARTHA", "MARHTA"), 4)`:  "float 0.9611",
		`round(jaro_winkler("DIXON", "DICKSONX"), 4)`: "float 0.8133",
		`round(jaro_winkler("DWAYNE", "DUANE"), 2)`:   "float 0.84",
		`jaro_winkler("", "")`:                        "float 1",
		`jaro_winkler("a", "")`:                       "float 0",
		`jaro_winkler("a", "a")`:                      "float 1",
		// times
		`hour(at, "Asia/Shanghai")`:       "int 6",
		`hour(at, "UTC")`:                 "int 22",
		`minute(at)`:                      "int 13",
		`weekday(at, "Asia/Shanghai")`:    "int 3",
		`day(at)`:                         "int 14",
		`month(at)`:                       "int 11",
		`year(at)`:                        "int 2023",
		`date(at)`:                        "string 2023-11-14",
		`date(at, "Asia/Shanghai")`:       "string 2023-11-15",
		`at - at`:                         "int 0",
		`at + 3600000 - at`:               "int 3600000",
		`hour(at - 3600000)`:              "int 21",
		`1 + at > at`:                     "bool true",
		`hour(at - 1700000000000 - 1)`:    "int 23", // 1969
		`weekday(at - 1700000000000 - 1)`: "int 3",
		// networks
		`cidr("2001:db8:1:2:3::1", 24)`:     "string 2001:db8:1:2::/64",
		`cidr("2001:db8:1:2:3::1", 24, 48)`: "string 2001:db8:1::/48",
		`cidr("10.1.2.3:443", 24)`:          "string 10.1.2.0/24",
		`cidr("[2001:db8::1]:443", 24, 32)`: "string 2001:db8::/32",
		`ip(" 10.1.2.3 , 10.0.0.1")`:        "string 10.1.2.3",
		`ip("::ffff:10.1.2.3")`:             "string 10.1.2.3",
		`ip("2001:0DB8::0001")`:             "string 2001:db8::1",
		`ip("[2001:db8::1]")`:               "string 2001:db8::1",
		`ip("[10.1.2.3]:80")`:               "null",
		`ip("10.1.2.3:")`:                   "null",
		`ip("10.1.2.3:65536")`:              "null",
		`ip("10.1.2.3:65535")`:              "string 10.1.2.3",
		`ip("10.1.2.3:x")`:                  "null",
		`ip(":80")`:                         "null",
		`ip("[]")`:                          "null",
		`ip("[")`:                           "null",
		`ip("]:1")`:                         "null",
		`ip("")`:                            "null",
		`ip(",")`:                           "null",
		`ip("fe80::1%eth0")`:                "null",
		`is_private(ip)`:                    "bool true",
		`is_private("100.64.0.1:80")`:       "bool true",
		`is_private("::1")`:                 "bool true",
		`is_private("fd00::1")`:             "bool true",
		`is_private("8.8.8.8, 10.0.0.1")`:   "bool false",
		`is_private("x")`:                   "null",
		// places
		`location(52.5, 13.4)`:    "location 52.5,13.4",
		`location(91, 0)`:         "null",
		`location(0, -180.5)`:     "null",
		`haversine(place, place)`: "float 0",
		`round(haversine(location(52.52, 13.405), location(1.3521, 103.8198)))`: "float 9916",
		// a null gives null
		`round(none)`: "null", `substr(other, 1)`: "null", `substr(status, none)`: "null", `levenshtein(other, "a")`: "null", `ip(other)`: "null",
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := e.Eval(exprValues())
		if err != nil || typed(got) != want {
			t.Errorf("%s = %s, error %v; want %s", text, typed(got), err, want)
		}
		if got.Scale > e.Scale() || !assignable(got.Type, e.Type()) {
			t.Errorf("%s: the result is a %s of scale %d, more than the stated %s of scale %d", text, got.Type, got.Scale, e.Type(), e.Scale())
		}
	}
}

func TestBadCalls(t *testing.T) {
	for text, want := range map[string]string{
		`abs()`:                     "abs(x) is given 0 arguments",
		`abs(status)`:               "abs(x): it takes a number, not a string",
		`round(n, none)`:            "round(x[, digits]): digits must be a number from 0 to 18",
		`round(n, 19)`:              "round(x[, digits]): digits must be a number from 0 to 18",
		`round(n, 1, 2)`:            "round(x[, digits]) is given 3 arguments",
		`min(n)`:                    "min(a, b, …) is given 1 argument",
		`min(n, status)`:            "min(a, b, …): its arguments must have one type, not an int and a string",
		`max(place, place)`:         "max(a, b, …): locations have no order",
		`coalesce(n, ok)`:           "coalesce(a, b, …): its arguments must have one type, not an int and a bool",
		`sqrt(status)`:              "sqrt(x) takes a float here, not a string",
		`decimal(n, n)`:             "decimal(x, scale): scale must be a number from 0 to 18",
		`cidr(ip)`:                  "cidr(s, v4[, v6]) is given 1 argument",
		`cidr(ip, n)`:               "cidr(s, v4[, v6]): v4 must be a number from 0 to 32",
		`cidr(ip, 33)`:              "cidr(s, v4[, v6]): v4 must be a number from 0 to 32",
		`cidr(ip, 24, 129)`:         "cidr(s, v4[, v6]): v6 must be a number from 0 to 128",
		`extract(status, other)`:    "extract(s, pattern[, group]): pattern must be a literal string",
		`extract(status, "(")`:      "extract(s, pattern[, group]): error parsing regexp: missing closing ): `(`",
		`extract(status, "(a)", 2)`: "extract(s, pattern[, group]): group must be a number from 0 to 1",
		`hour(n)`:                   "hour(t[, zone]) takes a timestamp here, not an int",
		`hour(at, status)`:          "hour(t[, zone]): zone must be a literal string",
		`hour(at, "Berlin")`:        `hour(t[, zone]): unknown time zone "Berlin"; write a name of the IANA database, such as Europe/Berlin or UTC`,
		`hour(at, "Local")`:         `hour(t[, zone]): unknown time zone "Local"; write a name of the IANA database, such as Europe/Berlin or UTC`,
		`levenshtein(status, n)`:    "levenshtein(a, b) takes a string here, not an int",
		`haversine(place, 1)`:       "haversine(a, b) takes a location here, not an int",
		`location(status, 1)`:       "location(lat, lon) takes a float here, not a string",
		`at + at`:                   "`+` is not allowed between a timestamp and a timestamp",
		`n - at`:                    "`-` is not allowed between an int and a timestamp",
		`at * 2`:                    "`*` is not allowed between a timestamp and an int",
		`at + score`:                "`+` is not allowed between a timestamp and a float",
		`levenstein(status, "a")`:   `unknown function "levenstein"; did you mean "levenshtein"?`,
	} {
		_, err := Compile(text, exprFields, value.Null)
		var e *Error
		if !errors.As(err, &e) || e.Message != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// What those who write events choose bounds neither the time nor the memory of a function.
func TestFunctionsBoundTheirWork(t *testing.T) {
	long := func(n int) value.Value { return value.Value{Type: value.String, Str: []byte(strings.Repeat("ä", n))} }
	for text, want := range map[string]string{
		`levenshtein(status, "a") == nil`:  "bool true",
		`jaro_winkler("a", status) == nil`: "bool true",
		`decimal(status, 2) == nil`:        "bool true",
		`substr(status, 1, 2)`:             "string ää",
		`len(split(status, "ä", 9))`:       "int 0",
		`ip(status) == nil`:                "bool true",
	} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Fatal(err)
		}
		values := exprValues()
		values[0] = long(30000)
		if got, err := e.Eval(values); err != nil || typed(got) != want {
			t.Errorf("%s = %s, error %v; want %s", text, typed(got), err, want)
		}
	}
	e, err := Compile(`replace(status, "ä", "äääääääääää")`, exprFields, value.Null)
	if err != nil {
		t.Fatal(err)
	}
	values := exprValues()
	values[0] = long(30000)
	if _, err := e.Eval(values); !errors.Is(err, errLong) {
		t.Errorf("err = %v, want %v", err, errLong)
	}
	for text, want := range map[string]error{`exp(1000)`: ErrOverflow, `pow(10, 400)`: ErrOverflow, `pow(-10, 401)`: ErrOverflow, `at + big`: ErrOverflow} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := e.Eval(exprValues()); !errors.Is(err, want) {
			t.Errorf("%s = %s, error %v; want %v", text, typed(v), err, want)
		}
	}
}

// Calls within calls do not share the memory of their arguments, nor do clones.
func TestCallsNest(t *testing.T) {
	e, err := Compile(`max(min(n, max(3, amount)), min(9, max(1, n - 1)), coalesce(none, 2))`, exprFields, value.Null)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*Expr{e, e.Clone()} {
		if got, err := e.Eval(exprValues()); err != nil || typed(got) != "int 7" {
			t.Errorf("got %s, %v; want int 7", typed(got), err)
		}
	}
}

// In a match, whose values have no types, a call with a value of another type is null.
func TestCallsInAMatch(t *testing.T) {
	e, err := CompileMatch(`(abs(a) > 1 or lower(a) == "x" or round(a, 1) == 2) == nil`)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []value.Value{{}, Truth(true), {Type: value.String, Str: []byte("y")}, {Type: value.Float, Flt: math.Pi}} {
		if _, err := e.Eval([]value.Value{v}); err != nil {
			t.Errorf("%s: %v", typed(v), err)
		}
	}
}

// Numbers of all lengths are rounded as exact fractions are, those of 64 bits without memory.
func TestRounding(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var f frame
	for range 20_000 {
		n := big.NewInt([]int64{0, 5, math.MaxInt64, math.MinInt64, random.Int64(), random.Int64N(10_000)}[random.IntN(6)])
		if random.IntN(2) == 0 {
			n.Neg(n)
		}
		if random.IntN(4) == 0 {
			n.Mul(n, big.NewInt(random.Int64()))
		}
		scale, digits := uint8(random.IntN(19)), uint8(random.IntN(19))
		v, ok := value.OfBig(value.Decimal, scale, n)
		if !ok {
			t.Fatal(n)
		}
		exact := new(big.Rat).SetFrac(n, powerOf(scale))
		shifted := new(big.Rat).Mul(exact, new(big.Rat).SetInt(powerOf(digits)))
		for _, way := range []struct {
			half bool
			side int
			want func(*big.Rat) *big.Int
		}{
			{false, -1, floorOf},
			{false, 1, func(r *big.Rat) *big.Int { return new(big.Int).Neg(floorOf(new(big.Rat).Neg(r))) }},
			{false, 0, func(r *big.Rat) *big.Int { return new(big.Int).Quo(r.Num(), r.Denom()) }},
			{true, 0, func(r *big.Rat) *big.Int {
				n := floorOf(new(big.Rat).Add(new(big.Rat).Abs(r), big.NewRat(1, 2)))
				return n.Mul(n, big.NewInt(int64(r.Sign())))
			}},
		} {
			got, want := rounded(&f, &v, digits, nil, way.half, way.side), shifted
			if scale > digits {
				want = new(big.Rat).SetInt(way.want(shifted))
			}
			is := new(big.Rat).SetFrac(new(big.Int).Mul(got.Big(), powerOf(digits)), powerOf(got.Scale))
			if is.Cmp(want) != 0 || got.Scale > max(scale, digits) {
				t.Fatalf("%s with %d digits, half %v, side %d: got %s", exact.FloatString(18), digits, way.half, way.side, got.AppendText(nil))
			}
		}
	}
	for _, text := range []string{"round(amount, 1)", "floor(amount)", "ceil(amount)", "decimal(score, 2)"} {
		e, err := Compile(text, exprFields, value.Null)
		if err != nil {
			t.Fatal(err)
		}
		values := exprValues()
		if n := testing.AllocsPerRun(100, func() { _, _ = e.Eval(values) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", text, n)
		}
	}
}

// Floats are rounded as their shortest digits are, which are all that an event said, without memory.
func TestRoundingFloats(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	check := func(x float64, digits uint8) {
		t.Helper()
		exact, _ := new(big.Rat).SetString(strconv.FormatFloat(x, 'g', -1, 64))
		shifted := new(big.Rat).Mul(exact, new(big.Rat).SetInt(powerOf(digits)))
		n := floorOf(new(big.Rat).Add(new(big.Rat).Abs(shifted), big.NewRat(1, 2)))
		want, _ := new(big.Rat).SetFrac(n.Mul(n, big.NewInt(int64(shifted.Sign()))), powerOf(digits)).Float64()
		if got := roundedFloat(x, digits); got != want {
			t.Fatalf("round(%v, %d) = %v, want %v", x, digits, got, want)
		}
	}
	for _, x := range []float64{
		0, 0.5, 1.005, 2.675, 1.015, 0.285, 1e-18, 5e-19, 4.999999999999999e-19, 9.223372036854775, 9.223372036854777, 5e-324, 1e22, 1e290, math.MaxFloat64,
		0.49999999999999994, 1<<52 - 0.5, 1<<51 + 0.25, 900719925474099.25, 9500000000000.0005,
	} {
		for digits := range value.MaxScale + 1 {
			for _, x := range []float64{x, math.Nextafter(x, 0), math.Nextafter(x, 1), -x} {
				check(x, digits)
			}
		}
	}
	for range 30_000 {
		digits, x := uint8(random.IntN(19)), math.Float64frombits(random.Uint64())
		if random.IntN(8) > 0 { // a half, and what is near one
			n := 10*random.Int64N(1<<random.IntN(56)) + 5
			x, _ = strconv.ParseFloat(fmt.Sprintf("%de-%d", n, digits+1), 64)
			for range random.IntN(4) {
				x = math.Nextafter(x, float64(random.IntN(3)-1)*math.MaxFloat64)
			}
		}
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			check(x, digits)
			check(-x, digits)
		}
	}
	e, err := Compile("round(score, 2)", exprFields, value.Null)
	if err != nil {
		t.Fatal(err)
	}
	values := exprValues()
	for x, want := range map[float64]string{1.005: "float 1.01", -1.005: "float -1.01", 0.1: "float 0.1", -0.004: "float 0", 92233720368547758.07: "float 9.223372036854776e+16"} {
		values[4].Flt = x
		if got, err := e.Eval(values); err != nil || typed(got) != want {
			t.Errorf("round(%v, 2) = %s, %v; want %s", x, typed(got), err, want)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = e.Eval(values) }); n != 0 {
			t.Errorf("round(%v, 2): %v allocations, want none", x, n)
		}
	}
}

// floorOf returns the greatest whole number that is not above a fraction.
func floorOf(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

// powerOf returns a power of ten.
func powerOf(n uint8) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
