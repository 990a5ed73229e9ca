package expr

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/testkit/server"
	"github.com/weir-stream/weir/value"
)

// duckProgram answers each line, a list of statements in SQL, with the rows of the last one, as texts and nulls.
const duckProgram = `
import json, sys, duckdb
con = duckdb.connect()
con.execute("SET threads = 1")
def text(v):
    return None if v is None else repr(v) if isinstance(v, float) else str(v).lower() if isinstance(v, bool) else str(v)
for line in sys.stdin:
    try:
        for statement in json.loads(line):
            result = con.execute(statement)
        answer = {"rows": [[text(v) for v in row] for row in result.fetchall()]}
    except Exception as e:
        answer = {"error": str(e)}
    print(json.dumps(answer), flush=True)
`

// duckDB is an SQL engine in a Python process.
type duckDB struct {
	in  io.Writer
	out *bufio.Reader
}

func startDuckDB(t *testing.T) *duckDB {
	python := os.Getenv("WEIR_TEST_DUCKDB")
	if python == "" {
		server.Skip(t, errors.New("set WEIR_TEST_DUCKDB to a Python that has what .ci/requirements.txt names"))
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", duckProgram)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		_ = cmd.Wait()
	})
	return &duckDB{in, bufio.NewReaderSize(out, 1<<20)}
}

// rows runs statements, and returns the rows of the last one.
func (d *duckDB) rows(t *rapid.T, statements ...string) [][]*string {
	line, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	answer, err := d.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var is struct {
		Rows  [][]*string
		Error string
	}
	if err := json.Unmarshal(answer, &is); err != nil {
		t.Fatal(err)
	}
	if is.Error != "" {
		t.Fatalf("%s\n%s", is.Error, statements[len(statements)-1])
	}
	return is.Rows
}

// both is an expression in Weir's language and in SQL.
type both struct {
	weir, sql string
	typ       value.Type
	scale     uint8 // of a decimal
	bits      int   // the most bits of an int, or of a decimal without its point, so that no engine overflows
	rough     bool  // the libraries that compute it may round differently
}

// columns are those of the table, and the features of the expressions. Timestamps are milliseconds in SQL.
var columns = []struct {
	Variable
	sql  string
	bits int
}{
	{Variable{Name: "i", Type: value.Int}, "HUGEINT", 63},
	{Variable{Name: "j", Type: value.Int}, "HUGEINT", 63},
	{Variable{Name: "k", Type: value.Int}, "HUGEINT", 3},
	{Variable{Name: "d", Type: value.Decimal, Scale: 2}, "DECIMAL(38,2)", 63},
	{Variable{Name: "e", Type: value.Decimal, Scale: 4}, "DECIMAL(38,4)", 63},
	{Variable{Name: "x", Type: value.Float}, "DOUBLE", 0},
	{Variable{Name: "y", Type: value.Float}, "DOUBLE", 0},
	{Variable{Name: "s", Type: value.String}, "VARCHAR", 0},
	{Variable{Name: "u", Type: value.String}, "VARCHAR", 0},
	{Variable{Name: "b", Type: value.Bool}, "BOOLEAN", 0},
	{Variable{Name: "c", Type: value.Bool}, "BOOLEAN", 0},
	{Variable{Name: "t", Type: value.Timestamp}, "HUGEINT", 42},
	{Variable{Name: "v", Type: value.Timestamp}, "HUGEINT", 42},
	{Variable{Name: "l", Type: value.Int, Shape: aggregate.List}, "HUGEINT[]", 40},
	{Variable{Name: "q", Type: value.String, Shape: aggregate.List}, "VARCHAR[]", 0},
	{Variable{Name: "m", Type: value.Decimal, Scale: 2, Shape: aggregate.Categories, Category: value.String}, "MAP(VARCHAR, DECIMAL(38,2))", 40},
}

// texts are usual, equal and strange ones. Upper case of ß is another one in each library, and the empty character is none in SQL.
var texts = []string{"", "a", "A", "a b", " a\t", "DE", "de", "ä", "Ä", "e\u0301", "日本", "👩‍👩‍👧", "a,b,,c", ",", "x@Y.org", "'\"\\", "12", "-0.5", "1e3",
	"1.", "\u00a0", "Ω", "ﬁ", "0012", "a.b", strings.Repeat("ab", 40)}

// patterns are of RE2, which both have.
var patterns = []string{"a", "^a", "b$", "[0-9]+", ".", "^$", "(?i)de", `\w+`, "ä|日", "^.*$", "a.b"}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// drawCell draws a value of a column, and writes it in SQL.
func drawCell(t *rapid.T, column int) (value.Value, Elements, string) {
	of := columns[column]
	if of.Shape != aggregate.Scalar {
		return drawElements(t, column)
	}
	v := value.Value{Type: of.Type, Scale: of.Scale}
	if rapid.IntRange(0, 6).Draw(t, "null") == 0 {
		return value.Value{}, Elements{}, "NULL"
	}
	switch of.Type {
	case value.String:
		v.Str = []byte(rapid.SampledFrom(texts).Draw(t, of.Name))
		return v, Elements{}, quoted(string(v.Str))
	case value.Bool:
		v = Truth(rapid.Bool().Draw(t, of.Name))
		return v, Elements{}, string(v.AppendText(nil))
	case value.Float:
		v.Flt = rapid.OneOf(
			rapid.SampledFrom([]float64{0, 1, -1, 0.5, 0.1, 0.3, 5e-324, math.MaxFloat64, -math.MaxFloat64, 1 << 53, 1e308, -2.5, 2.5, 1e-300}),
			rapid.Float64Range(-1e6, 1e6), rapid.Float64()).Draw(t, of.Name) + 0
		if v.Flt == 0 {
			v.Flt = 0 // without a sign, as in events
		}
		return v, Elements{}, "'" + strconv.FormatFloat(v.Flt, 'g', -1, 64) + "'::DOUBLE"
	case value.Timestamp: // of years whose time zones are settled
		v.Num = rapid.OneOf(rapid.Int64Range(0, 1_760_000_000_000), rapid.SampledFrom([]int64{0, 1, 1_700_000_000_000, 1_711_846_800_000})).Draw(t, of.Name)
	default:
		v.Num = rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-100_000, 100_000), rapid.SampledFrom([]int64{
			math.MaxInt64, -math.MaxInt64, 1 << 53, 1<<53 + 1, 500, -500, 50, 150}), rapid.Int64Range(-math.MaxInt64, math.MaxInt64)).Draw(t, of.Name)
		if of.bits < 10 {
			v.Num %= 1 << of.bits
		}
	}
	return v, Elements{}, "'" + string(v.AppendText(nil)) + "'::" + of.sql
}

func drawElements(t *rapid.T, column int) (value.Value, Elements, string) {
	of := columns[column]
	var e Elements
	var members, keys []string
	for i := range rapid.IntRange(0, 4).Draw(t, of.Name) {
		v, sql := value.Value{Type: of.Type, Scale: of.Scale}, "NULL"
		switch {
		case rapid.IntRange(0, 9).Draw(t, "null") == 0:
			v = value.Value{}
		case of.Type == value.String:
			v.Str = []byte(rapid.SampledFrom(texts).Draw(t, "text"))
			sql = quoted(string(v.Str))
		default:
			v.Num = rapid.OneOf(rapid.Int64Range(-1, 3), rapid.Int64Range(0, 1<<40-1)).Draw(t, "number")
			sql = "'" + string(v.AppendText(nil)) + "'"
		}
		key := texts[i]
		e.Items = append(e.Items, aggregate.Item{Value: v, Category: textOf([]byte(key))})
		members, keys = append(members, sql), append(keys, quoted(key))
	}
	list := "[" + strings.Join(members, ", ") + "]"
	if of.Shape == aggregate.Categories {
		list = "MAP([" + strings.Join(keys, ", ") + "]::VARCHAR[], " + list + "::DECIMAL(38,2)[])"
	}
	return value.Value{}, e, list + "::" + of.sql
}

// writer writes random expressions in both languages. SQL has the types of Weir's results by casts, and Weir's nulls by cases.
type writer struct{ *rapid.T }

func (w writer) one(of ...func() both) both {
	return of[rapid.IntRange(0, len(of)-1).Draw(w.T, "form")]()
}
func (w writer) pick(from ...string) string {
	return from[rapid.IntRange(0, len(from)-1).Draw(w.T, "word")]
}

// op makes an expression of a format of each language, whose arguments are other expressions.
func op(typ value.Type, bits int, weir, sql string, args ...both) both {
	var w, s []any
	rough := false
	for _, a := range args {
		w, s, rough = append(w, a.weir), append(s, a.sql), rough || a.rough
	}
	return both{weir: fmt.Sprintf(weir, w...), sql: fmt.Sprintf(sql, s...), typ: typ, bits: bits, rough: rough}
}

func (b both) scaled(scale uint8) both {
	b.scale = scale
	b.sql = fmt.Sprintf("CAST(%s AS DECIMAL(38,%d))", b.sql, scale)
	return b
}

const maxBits = 118 // of decimals with 38 digits

// at is an int or a decimal in SQL as a decimal of a scale. ok is false if it may not fit.
func (b both) at(scale uint8) (of both, ok bool) {
	b.bits += int(math.Ceil(math.Log2(10) * float64(scale-b.scale)))
	return b.scaled(scale), b.bits <= maxBits
}

// double is a number in SQL as the nearest float; from a text it is rounded once.
func (b both) double() both {
	if b.typ != value.Float {
		b.sql = "CAST(CAST(" + b.sql + " AS VARCHAR) AS DOUBLE)"
	}
	return b
}

// of draws an expression of a type, of so many levels at most.
func (w writer) of(typ value.Type, depth int) both {
	if depth <= 0 {
		return w.leaf(typ)
	}
	depth--
	common := func() both {
		return w.one(
			func() both { return w.leaf(typ) },
			func() both { return w.same("coalesce(%s, %s)", "coalesce(%s, %s)", w.of(typ, depth), w.of(typ, depth)) },
			func() both { return w.same("(%s ?? %s)", "coalesce(%s, %s)", w.of(typ, depth), w.of(typ, depth)) },
			func() both {
				cond := w.of(value.Bool, depth)
				return w.same("("+strings.ReplaceAll(cond.weir, "%", "%%")+" ? %s : %s)", "(CASE WHEN "+strings.ReplaceAll(cond.sql, "%", "%%")+" THEN %s ELSE %s END)",
					w.of(typ, depth), w.of(typ, depth))
			},
			func() both {
				if typ == value.Bool {
					return w.leaf(typ) // bools have no order in SQL's sense
				}
				f := w.pick("min", "max")
				a, b := w.of(typ, depth), w.of(typ, depth)
				null := strings.ReplaceAll(a.sql+" IS NULL OR "+b.sql, "%", "%%")
				return w.same(f+"(%s, %s)", "(CASE WHEN "+null+" IS NULL THEN NULL ELSE "+map[string]string{"min": "least", "max": "greatest"}[f]+"(%s, %s) END)", a, b)
			},
		)
	}
	own := map[value.Type]func() both{
		value.Int: func() both { return w.int(depth) }, value.Decimal: func() both { return w.decimal(depth) },
		value.Float: func() both { return w.float(depth) }, value.Bool: func() both { return w.bool(depth) },
		value.String: func() both { return w.text(depth) }, value.Timestamp: func() both { return w.timestamp(depth) },
	}[typ]
	if rapid.IntRange(0, 2).Draw(w.T, "common") == 0 {
		return common()
	}
	return own()
}

// same makes an expression that is one of two of a type.
func (w writer) same(weir, sql string, a, b both) both {
	scale := max(a.scale, b.scale)
	if a.typ == value.Decimal {
		x, ok1 := a.at(scale)
		y, ok2 := b.at(scale)
		if !ok1 || !ok2 {
			return a
		}
		a, b = x, y
	}
	of := op(a.typ, max(a.bits, b.bits), weir, sql, a, b)
	of.scale = scale
	return of
}

func (w writer) leaf(typ value.Type) both {
	var of []func() both
	for _, c := range columns {
		if c.Type == typ && c.Shape == aggregate.Scalar {
			of = append(of, func() both { return both{weir: c.Name, sql: "r." + c.Name, typ: typ, scale: c.Scale, bits: c.bits} })
		}
	}
	switch typ {
	case value.Int:
		of = append(of, func() both {
			n := rapid.SampledFrom([]string{"0", "1", "2", "7", "100", "9223372036854775807"}).Draw(w.T, "int")
			return both{weir: n, sql: "'" + n + "'::HUGEINT", typ: typ, bits: 63}
		})
	case value.Decimal:
		of = append(of, func() both {
			n := rapid.SampledFrom([]string{"0.5", "12.34", "0.1", "1.005", "99999999999.99"}).Draw(w.T, "decimal")
			return both{weir: n, sql: "'" + n + "'", typ: typ, bits: 47}.scaled(uint8(len(n) - strings.Index(n, ".") - 1))
		})
	case value.String:
		of = append(of, func() both {
			s := rapid.SampledFrom(texts).Draw(w.T, "text")
			return both{weir: strconv.Quote(s), sql: quoted(s), typ: typ}
		})
	case value.Bool:
		of = append(of, func() both { b := w.pick("true", "false"); return both{weir: b, sql: b, typ: typ} })
	}
	return w.one(of...)
}

func (w writer) int(depth int) both {
	a := w.of(value.Int, depth)
	b := func() both { return w.of(value.Int, depth) }
	list := w.pick("l", "q", "m")
	inSQL := map[string]string{"l": "r.l", "q": "r.q", "m": "map_values(r.m)"}[list]
	return w.one(
		func() both {
			b := b()
			o := w.pick("+", "-")
			if bits := max(a.bits, b.bits) + 1; bits <= maxBits {
				return op(value.Int, bits, "(%s "+o+" %s)", "(%s "+o+" %s)", a, b)
			}
			return a
		},
		func() both {
			b := b()
			if bits := a.bits + b.bits; bits <= maxBits {
				return op(value.Int, bits, "(%s * %s)", "(%s * %s)", a, b)
			}
			return b
		},
		func() both { return op(value.Int, a.bits, "(%s %% %s)", "(%s %% nullif(%s, 0))", a, b()) },
		func() both { return op(value.Int, a.bits, "(-(%s))", "(-(%s))", a) },
		func() both { return op(value.Int, a.bits, "abs(%s)", "abs(%s)", a) },
		func() both { return op(value.Int, a.bits, w.pick("round", "floor", "ceil")+"(%s)", "(%s)", a) },
		func() both { return op(value.Int, 1, "int(%s)", "CAST(%s AS HUGEINT)", w.of(value.Bool, depth)) },
		func() both { return op(value.Int, 42, "int(%s)", "(%s)", w.leaf(value.Timestamp)) },
		func() both {
			d := w.of(value.Decimal, depth) // SQL rounds
			zero, _ := op(value.Decimal, d.bits, "%s", "trunc(%s)", d), 0
			return both{weir: "int(" + d.weir + ")", sql: "CAST(" + zero.sql + " AS HUGEINT)", typ: value.Int, bits: d.bits}
		},
		func() both {
			return op(value.Int, 63, "int(%s)", "(CASE WHEN regexp_full_match(%[1]s, '-?(0|[1-9][0-9]*)') THEN CAST(%[1]s AS HUGEINT) WHEN %[1]s = '1e3' THEN 1000 END)",
				both{weir: "s", sql: "r.s"})
		},
		func() both { return op(value.Int, 20, "len(%s)", "length(%s)", w.of(value.String, depth)) },
		func() both {
			return op(value.Int, 43, "(%s - %s)", "(%s - %s)", w.leaf(value.Timestamp), w.leaf(value.Timestamp))
		},
		func() both {
			part := w.pick("hour", "minute", "day", "month", "year", "weekday")
			zone, t := w.pick("", "UTC", "Asia/Shanghai", "America/New_York", "Australia/Lord_Howe"), w.leaf(value.Timestamp)
			inSQL := strings.Replace(part, "weekday", "isodow", 1)
			if zone == "" {
				return op(value.Int, 12, part+"(%s)", inSQL+"(epoch_ms(CAST(%s AS BIGINT)))", t)
			}
			return op(value.Int, 12, part+"(%s, '"+zone+"')", inSQL+"(timezone('"+zone+"', timezone('UTC', epoch_ms(CAST(%s AS BIGINT)))))", t)
		},
		func() both { return op(value.Int, 3, "len("+list+")", "CAST(len("+inSQL+") AS HUGEINT)") },
		func() both {
			at := both{weir: "k", sql: "r.k"}
			return op(value.Int, 40, "l[%s]", "(CASE WHEN %[1]s >= 0 THEN r.l[CAST(%[1]s + 1 AS BIGINT)] ELSE r.l[CAST(%[1]s AS BIGINT)] END)", at)
		},
		func() both {
			f := w.pick("sum", "min", "max")
			return op(value.Int, 43, f+"(l)", "(CASE WHEN list_count(r.l) = len(r.l) THEN coalesce(list_"+f+"(r.l)"+map[string]string{"sum": ", 0"}[f]+") END)")
		},
	)
}

func (w writer) decimal(depth int) both {
	a := w.of(value.Decimal, depth)
	number := func() both { // beside a decimal an int is one
		if b := w.of(w.number(), depth); b.typ != value.Float {
			return b
		}
		return w.leaf(value.Int)
	}
	return w.one(
		func() both {
			o, b := w.pick("+", "-"), number()
			scale := max(a.scale, b.scale)
			x, ok1 := a.at(scale)
			y, ok2 := b.at(scale)
			if bits := max(x.bits, y.bits) + 1; ok1 && ok2 && bits <= maxBits {
				return op(value.Decimal, bits, "(%s "+o+" %s)", "(%s "+o+" %s)", x, y).scaled(scale)
			}
			return a
		},
		func() both {
			b := number()
			if bits, scale := a.bits+b.bits, a.scale+b.scale; bits <= maxBits && scale <= value.MaxScale {
				return op(value.Decimal, bits, "(%s * %s)", "(%s * %s)", a, b.scaled(b.scale)).scaled(scale)
			}
			return a
		},
		func() both { return op(value.Decimal, a.bits, "(-(%s))", "(-(%s))", a).scaled(a.scale) },
		func() both { return op(value.Decimal, a.bits, "abs(%s)", "abs(%s)", a).scaled(a.scale) },
		func() both {
			f := w.pick("floor", "ceil")
			return op(value.Decimal, a.bits, f+"(%s)", f+"(%s)", a).scaled(0)
		},
		func() both {
			digits := uint8(rapid.IntRange(0, int(a.scale)).Draw(w.T, "digits"))
			return op(value.Decimal, a.bits, fmt.Sprintf("round(%%s, %d)", digits), fmt.Sprintf("round(%%s, %d)", digits), a).scaled(digits)
		},
		func() both {
			scale := uint8(rapid.IntRange(0, int(a.scale)).Draw(w.T, "scale"))
			return op(value.Decimal, a.bits, fmt.Sprintf("decimal(%%s, %d)", scale), "%s", a).scaled(scale)
		},
		func() both {
			i := w.leaf(value.Int)
			return op(value.Decimal, i.bits, "decimal(%s, 3)", "%s", i).scaled(0)
		},
		func() both {
			key := w.of(value.String, min(depth, 1))
			return op(value.Decimal, 40, "m[%s]", "map_extract(r.m, %s)[1]", key).scaled(2)
		},
		func() both {
			f := w.pick("sum", "min", "max")
			all := "(CASE WHEN list_count(map_values(r.m)) = len(map_values(r.m)) THEN coalesce(list_" + f + "(map_values(r.m))" + map[string]string{"sum": ", 0"}[f] + ") END)"
			return op(value.Decimal, 43, f+"(m)", all).scaled(2)
		},
	)
}

func (w writer) number() value.Type {
	return []value.Type{value.Int, value.Decimal, value.Float}[rapid.IntRange(0, 2).Draw(w.T, "number")]
}

// finite makes null what is no finite float.
func (b both) finite() both {
	b.sql = "finite(" + b.sql + ")"
	return b
}

func (w writer) float(depth int) both {
	a := w.of(value.Float, depth)
	return w.one(
		func() both {
			o, b := w.pick("+", "-", "*"), w.of(w.number(), depth)
			return op(value.Float, 0, "(%s "+o+" %s)", "(%s "+o+" %s)", a, b.double()).finite()
		},
		func() both {
			return op(value.Float, 0, "(%s / %s)", "(%s / nullif(%s, 0))", w.of(w.number(), depth).double(), a).finite()
		},
		func() both { // each of the two is a float, exactly, so that SQL rounds once too
			k := both{weir: "k", sql: "r.k", typ: value.Int}
			return op(value.Float, 0, "(%s / %s)", "(CAST(%s AS DOUBLE) / nullif(CAST(%s AS DOUBLE), 0))",
				both{weir: w.pick("1", "12", "k", "len(s)"), sql: ""}.inSQL(), k)
		},
		func() both { return op(value.Float, 0, "sqrt(%s)", "(CASE WHEN %[1]s >= 0 THEN sqrt(%[1]s) END)", a) },
		func() both { return op(value.Float, 0, "abs(%s)", "abs(%s)", a) },
		func() both { f := w.pick("floor", "ceil"); return op(value.Float, 0, f+"(%s)", f+"(%s)", a) },
		func() both { return op(value.Float, 0, "round(%s)", "round(%s)", a) },
		func() both { return op(value.Float, 0, "float(%s)", "%s", w.of(w.number(), depth).double()) },
		func() both {
			return op(value.Float, 0, "float(%s)", "(CASE WHEN regexp_full_match(%[1]s, '-?(0|[1-9][0-9]*)([.][0-9]+)?(e[0-9]+)?') THEN CAST(%[1]s AS DOUBLE) END)",
				w.leaf(value.String))
		},
		func() both {
			return op(value.Float, 0, "share_max(l)", "(CASE WHEN list_count(r.l) = len(r.l) AND list_min(r.l) >= 0 THEN "+
				"CAST(list_max(r.l) AS DOUBLE) / nullif(CAST(list_sum(r.l) AS DOUBLE), 0) END)")
		},
	)
}

// inSQL finds the SQL of a short expression of ints.
func (b both) inSQL() both {
	b.sql = map[string]string{"1": "1", "12": "12", "k": "r.k", "len(s)": "length(r.s)"}[b.weir]
	return b
}

func (w writer) bool(depth int) both {
	anyOf := func() value.Type {
		return []value.Type{value.Int, value.Decimal, value.Float, value.String, value.Timestamp, value.Bool}[rapid.IntRange(0, 5).Draw(w.T, "type")]
	}
	return w.one(
		func() both { return w.compared(depth) },
		func() both { return w.compared(depth) },
		func() both {
			o := w.pick("and", "or")
			return op(value.Bool, 0, "(%s "+o+" %s)", "(%s "+o+" %s)", w.of(value.Bool, depth), w.of(value.Bool, depth))
		},
		func() both { return op(value.Bool, 0, "(not (%s))", "(NOT (%s))", w.of(value.Bool, depth)) },
		func() both { return op(value.Bool, 0, "(%s == nil)", "(%s IS NULL)", w.of(anyOf(), depth)) },
		func() both { return op(value.Bool, 0, "(%s != nil)", "(%s IS NOT NULL)", w.of(anyOf(), depth)) },
		func() both {
			return op(value.Bool, 0, "(%s in [1, 2, -3, 9223372036854775807])", "(%s IN (1, 2, -3, 9223372036854775807))", w.of(value.Int, depth))
		},
		func() both {
			return op(value.Bool, 0, `(%s not in ["a", "DE", "日本"])`, `(%s NOT IN ('a', 'DE', '日本'))`, w.of(value.String, depth))
		},
		func() both { return op(value.Bool, 0, "(%s in 1..7)", "(%s BETWEEN 1 AND 7)", w.of(value.Int, depth)) },
		func() both {
			o := w.pick("contains", "startsWith", "endsWith")
			inSQL := map[string]string{"contains": "contains", "startsWith": "starts_with", "endsWith": "suffix"}[o]
			return op(value.Bool, 0, "(%s "+o+" %s)", inSQL+"(%s, %s)", w.of(value.String, depth), w.of(value.String, depth))
		},
		func() both {
			p := rapid.SampledFrom(patterns).Draw(w.T, "pattern")
			return op(value.Bool, 0, "(%s matches "+strconv.Quote(p)+")", "regexp_matches(%s, "+quoted(p)+")", w.of(value.String, depth))
		},
		func() both {
			return op(value.Bool, 0, "(%s in l)", "(CASE WHEN %[1]s IS NOT NULL THEN coalesce(list_contains(r.l, %[1]s), false) END)", w.of(value.Int, depth))
		},
		func() both {
			return op(value.Bool, 0, "(%s in q)", "(CASE WHEN %[1]s IS NOT NULL THEN coalesce(list_contains(r.q, %[1]s), false) END)", w.of(value.String, depth))
		},
		func() both {
			return op(value.Bool, 0, "(%s in m)", "(CASE WHEN %[1]s IS NOT NULL THEN list_contains(map_keys(r.m), %[1]s) END)", w.of(value.String, depth))
		},
	)
}

// compared compares two values: numbers of any types, exactly unless one is a float.
func (w writer) compared(depth int) both {
	o := w.pick("==", "!=", "<", "<=", ">", ">=")
	inSQL := map[string]string{"==": "=", "!=": "<>"}[o]
	if inSQL == "" {
		inSQL = o
	}
	typ := []value.Type{value.Int, value.String, value.Timestamp, value.Decimal}[rapid.IntRange(0, 3).Draw(w.T, "type")]
	a, b := w.of(typ, depth), both{}
	switch typ {
	case value.String, value.Timestamp:
		b = w.of(typ, depth)
	default:
		b = w.of(w.number(), depth)
		if b.typ == value.Float {
			a = a.double()
			break
		}
		scale := max(a.scale, b.scale)
		x, ok1 := a.at(scale)
		y, ok2 := b.at(scale)
		if !ok1 || !ok2 {
			return w.leaf(value.Bool)
		}
		a, b = x, y
	}
	return op(value.Bool, 0, "(%s "+o+" %s)", "(%s "+inSQL+" %s)", a, b)
}

func (w writer) text(depth int) both {
	a := w.of(value.String, depth)
	b := func() both { return w.of(value.String, depth) }
	k := both{weir: "k", sql: "CAST(r.k AS BIGINT)"}
	return w.one(
		func() both { f := w.pick("lower", "upper"); return op(value.String, 0, f+"(%s)", f+"(%s)", a) },
		func() both { return op(value.String, 0, "trim(%s)", "trim(%s, E' \\t\\n\\r\u00a0')", a) },
		func() both { return op(value.String, 0, "substr(%s, %s)", "substring(%s, %s)", a, k) },
		func() both {
			return op(value.String, 0, "substr(%s, %s, %s)", "(CASE WHEN %[3]s >= 0 THEN substring(%[1]s, %[2]s, %[3]s) END)", a, k,
				both{weir: "len(u)", sql: "length(r.u)"})
		},
		func() both {
			return op(value.String, 0, "split(%s, %s, %s)", "(CASE WHEN %[2]s <> '' THEN str_split(%[1]s, %[2]s)[%[3]s] END)", a, b(), k)
		},
		func() both {
			return op(value.String, 0, "replace(%s, %s, %s)", "replace(%s, %s, %s)", a, b(), w.leaf(value.String))
		},
		func() both {
			p := rapid.SampledFrom(patterns).Draw(w.T, "pattern")
			return op(value.String, 0, "extract(%s, "+strconv.Quote(p)+")", "(CASE WHEN regexp_matches(%[1]s, "+quoted(p)+") THEN regexp_extract(%[1]s, "+quoted(p)+") END)", a)
		},
		func() both {
			return op(value.String, 0, `extract(%s, "(\\w)(.)", 2)`, `(CASE WHEN regexp_matches(%[1]s, '(\w)(.)') THEN regexp_extract(%[1]s, '(\w)(.)', 2) END)`, a)
		},
		func() both { return op(value.String, 0, "(%s + %s)", "(%s || %s)", a, b()) },
		func() both { return op(value.String, 0, "string(%s)", "CAST(%s AS VARCHAR)", w.of(value.Int, depth)) },
		func() both { return op(value.String, 0, "string(%s)", "CAST(%s AS VARCHAR)", w.of(value.Bool, depth)) },
		func() both { return op(value.String, 0, "hash(%s)", "sha256(%s)", a) },
		func() both {
			return op(value.String, 0, "date(%s, 'Asia/Shanghai')", "strftime(timezone('Asia/Shanghai', timezone('UTC', epoch_ms(CAST(%s AS BIGINT)))), '%%Y-%%m-%%d')",
				w.leaf(value.Timestamp))
		},
		func() both { return op(value.String, 0, "q[0]", "r.q[1]") },
	)
}

func (w writer) timestamp(depth int) both {
	t, k := w.of(value.Timestamp, depth), both{weir: "k", sql: "r.k"}
	if t.bits > 50 {
		return t
	}
	return w.one(
		func() both { return op(value.Timestamp, t.bits+1, "(%s + %s)", "(%s + %s)", t, k) },
		func() both { return op(value.Timestamp, t.bits+1, "(%s - %s)", "(%s - %s)", t, k) },
	)
}

// rough draws an expression of a function that libraries compute differently in the last digits.
func (w writer) rough() both {
	x := w.of(value.Float, 1)
	of := w.one(
		func() both { return op(value.Float, 0, "exp(%s)", "finite(exp(%s))", x) },
		func() both { return op(value.Float, 0, "log(%s)", "(CASE WHEN %[1]s > 0 THEN ln(%[1]s) END)", x) },
		func() both {
			return op(value.Float, 0, "pow(%s, %s)", "finite(CASE WHEN %[1]s > 0 THEN pow(%[1]s, %[2]s) WHEN %[1]s IS NOT NULL AND %[2]s >= 0 THEN pow(%[1]s, %[2]s) END)",
				op(value.Float, 0, "abs(%s)", "abs(%s)", x), both{weir: "float(k)", sql: "CAST(r.k AS DOUBLE)"})
		},
	)
	of.rough = true
	return of
}

// differs says how a result differs from that of SQL; empty if it does not.
func differs(v value.Value, sql *string, rough bool) string {
	text := string(v.AppendText(nil))
	if v.IsNull() || sql == nil {
		if v.IsNull() && sql == nil {
			return ""
		}
		return "null"
	}
	same := text == *sql
	switch {
	case v.Type == value.Float:
		f, err := strconv.ParseFloat(*sql, 64)
		same = err == nil && (f == v.Flt || rough && math.Abs(f-v.Flt) <= 1e-13*math.Abs(f)+5e-324)
	case v.Type == value.Int || v.Type == value.Decimal:
		n, ok := new(big.Rat).SetString(*sql)
		same = ok && n.Cmp(rational(v)) == 0
	}
	if same {
		return ""
	}
	return v.Type.String()
}

// Random expressions are in every row what an SQL engine gives: over nulls, ties, extreme numbers and texts of all kinds. Not in
// SQL, or with another meaning there, are ip, cidr, is_private, email_domain, normalize, levenshtein and jaro_winkler (of
// characters, there of bytes), location and haversine, string of floats and decimals, upper of ß, and min and max of bools.
// RAPID_CHECKS draws more.
func TestExpressionsEqualSQL(t *testing.T) {
	db, cells, began := startDuckDB(t), atomic.Int64{}, time.Now()
	var names named
	var create []string
	for _, c := range columns {
		names, create = append(names, c.Variable), append(create, c.Name+" "+c.sql)
	}
	rapid.Check(t, func(t *rapid.T) {
		const rows = 60
		values, elements := make([][]value.Value, rows), make([][]Elements, rows)
		insert := make([]string, rows)
		for i := range rows {
			sql := []string{strconv.Itoa(i)}
			for j := range columns {
				v, e, text := drawCell(t, j)
				values[i], elements[i], sql = append(values[i], v), append(elements[i], e), append(sql, text)
			}
			insert[i] = "(" + strings.Join(sql, ", ") + ")"
		}
		w := writer{t}
		var expressions []both
		var selected []string
		for range 20 {
			typ := []value.Type{value.Int, value.Decimal, value.Float, value.Bool, value.String, value.Timestamp, value.Null}[rapid.IntRange(0, 6).Draw(t, "type")]
			var e both
			if typ == value.Null {
				e = w.rough()
			} else {
				e = w.of(typ, rapid.IntRange(0, 3).Draw(t, "depth"))
			}
			if len(e.weir) > maxExprLength/2 {
				continue
			}
			expressions, selected = append(expressions, e), append(selected, e.sql)
		}
		if len(expressions) == 0 {
			return
		}
		got := db.rows(t,
			"CREATE OR REPLACE MACRO finite(f) AS CASE WHEN isfinite(f) THEN f END",
			"CREATE OR REPLACE TABLE r (n INT, "+strings.Join(create, ", ")+")",
			"INSERT INTO r VALUES "+strings.Join(insert, ", "),
			"SELECT "+strings.Join(selected, ", ")+" FROM r ORDER BY n")
		for i, of := range expressions {
			e, err := CompileOver(of.weir, names, nil, value.Null)
			if err != nil {
				t.Fatalf("%s: %v", of.weir, err)
			}
			for row := range rows {
				v, err := e.EvalWith(values[row], elements[row], nil)
				if err != nil {
					t.Fatalf("%s: %v", of.weir, err)
				}
				if how := differs(v, got[row][i], of.rough); how != "" {
					sql := "null"
					if got[row][i] != nil {
						sql = *got[row][i]
					}
					t.Fatalf("%s is %s, in SQL %s\n%s\nof %s", of.weir, typed(v), sql, of.sql, insert[row])
				}
			}
			cells.Add(rows)
		}
	})
	t.Logf("%d cells in %s", cells.Load(), time.Since(began).Round(time.Millisecond))
}

// Each function of the language is compared with SQL, or stated not to be.
func TestFunctionsComparedWithSQL(t *testing.T) {
	source, err := os.ReadFile("sql_test.go")
	if err != nil {
		t.Fatal(err)
	}
	without := []string{"ip", "cidr", "is_private", "email_domain", "normalize", "levenshtein", "jaro_winkler", "location", "haversine"}
	for name := range functions {
		if slices.Contains(without, name) {
			continue
		}
		if text := string(source); !strings.Contains(text, `"`+name+`(`) && !strings.Contains(text, "`"+name+"(") && !strings.Contains(text, `"`+name+`"`) {
			t.Errorf("%s is not compared with SQL", name)
		}
	}
}
