package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

func number(n int64) value.Value { return value.Value{Type: value.Int, Num: n} }
func text(s string) value.Value  { return value.Value{Type: value.String, Str: []byte(s)} }

// tx is a table with a null in each column but the first.
var tx = &Table{
	Columns: []Column{{"name", value.String}, {"timestamp", value.Timestamp}, {"amount", value.Decimal}, {"value", value.String}, {"count", value.Int}, {"mean", value.Float}},
	Rows: []Row{
		{"name": text("u'1"), "timestamp": {Type: value.Timestamp, Num: 1000}, "amount": {Type: value.Decimal, Scale: 2, Num: 150}, "value": text("a"), "count": number(2)},
		{"name": text("u'1"), "timestamp": {Type: value.Timestamp, Num: 86400000}, "amount": {Type: value.Decimal, Scale: 2, Num: 1}, "value": text("b"), "mean": {Type: value.Float, Flt: 0.1}},
		{"name": text("u'1"), "value": text("a"), "count": number(math.MaxInt64), "mean": {Type: value.Float, Flt: 0.2}},
		{"name": text("u2"), "timestamp": {Type: value.Timestamp, Num: 86400001}, "amount": {Type: value.Decimal, Scale: 2, Num: -1}, "mean": {Type: value.Float, Flt: 0.3}},
	},
}

// answer is a result, or an error, on one line.
func answer(query string, args ...string) string {
	q, err := Parse(query, args)
	if err != nil {
		return err.Error()
	}
	r, err := q.Run(tx)
	if err != nil {
		return err.Error()
	}
	lines := []string{strings.Join(r.Columns, " ")}
	for _, row := range r.Rows {
		var cells []string
		for _, v := range row {
			cells = append(cells, string(v.AppendText(nil)))
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, "; ")
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		query string
		args  []string
		want  string
	}{
		{"SELECT sum(amount) FROM tx WHERE name = ? AND timestamp > ?", []string{"u'1", "1970-01-01"}, "sum(amount); 1.51"},
		{"select Sum( amount ) from tx where name='u''1' and timestamp>'1970-01-01T00:00:01Z';", nil, "Sum( amount ); 0.01"},
		{"SELECT count(value), count(DISTINCT value), count(*), count(timestamp) FROM tx", nil, "count(value) count(DISTINCT value) count(*) count(timestamp); 3 2 4 3"},
		{"SELECT min(amount), max(amount), min(value), max(timestamp) FROM tx", nil, "min(amount) max(amount) min(value) max(timestamp); -0.01 1.5 a 86400001"},
		{"SELECT sum(count) FROM tx", nil, "sum(count); 9223372036854775809"},
		{"SELECT sum(mean) FROM tx", nil, "sum(mean); 0.6"}, // 0.1 + 0.2 + 0.3 is 0.6000000000000001 if each sum is rounded
		{"SELECT sum(count), count(*) FROM tx WHERE name = 'none'", nil, "sum(count) count(*);  0"},
		{"SELECT value, count FROM tx WHERE count >= 2", nil, "value count; a 2; a 9223372036854775807"},
		{"SELECT value, count(*) FROM tx GROUP BY value", nil, "value count(*); a 2; b 1;  1"},
		{"SELECT value FROM tx WHERE name = 'none' GROUP BY value", nil, "value"},
		{"SELECT * FROM tx WHERE value = 'b'", nil, "name timestamp amount value mean; u'1 86400000 0.01 b 0.1"},
		{"SELECT * FROM tx WHERE value = 'c'", nil, "name timestamp amount value count mean"},
		{`SELECT "value" FROM tx WHERE amount < -0.005`, nil, "value; "},
		{"SELECT value FROM tx WHERE mean <= 0.1", nil, "value; b"},
		{"SELECT value FROM tx WHERE value <> 'a'", nil, "value; b"},
		{"SELECT value FROM tx WHERE value != 'a' AND value = 'b' AND timestamp = 86400000", nil, "value; b"},
	} {
		if got := answer(c.query, c.args...); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.query, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		query string
		args  []string
		want  string
	}{
		{"", nil, "at character 1: want SELECT, got the end; a query is " + Grammar},
		{"DELETE FROM tx", nil, "at character 1: want SELECT, got DELETE"},
		{"SELECT FROM tx", nil, "at character 13: want FROM, got tx"},
		{"SELECT avg(amount) FROM tx", nil, "at character 8: want one of the functions count, sum, min, max, got avg"},
		{"SELECT sum(*) FROM tx", nil, "at character 12: want the name of a column, got *"},
		{"SELECT count(value FROM tx", nil, "at character 20: want ), got FROM"},
		{"SELECT value FROM tx ORDER BY value", nil, "at character 22: want the end, got ORDER"},
		{"SELECT value FROM tx, tx", nil, "at character 21: want the end, got ,"},
		{"SELECT value FROM tx; SELECT value FROM tx", nil, "at character 23: want the end, got SELECT"},
		{"SELECT value FROM tx WHERE value = a", nil, "at character 36: want a 'text', a number or ?, got a"},
		{"SELECT value FROM tx WHERE value LIKE 'a'", nil, "at character 34: want a comparison, got LIKE"},
		{"SELECT value FROM tx WHERE value = 'a' OR value = 'b'", nil, "at character 40: want the end, got OR"},
		{"SELECT value FROM tx WHERE value = 'a", nil, "at character 36: want a 'text', a number or ?, got 'a"},
		{"SELECT value FROM tx WHERE value = ?", nil, "value = ?: no value is given for it"},
		{"SELECT value FROM tx WHERE value = ?", []string{"a", "b"}, "2 values are given, and the query has 1 question marks"},
		{"SELECT valu FROM tx", nil, `there is no column "valu"; there are name, timestamp, amount, value, count, mean`},
		{"SELECT sum(valu) FROM tx", nil, `there is no column "valu"`},
		{"SELECT value FROM tx WHERE valu = 'a'", nil, `there is no column "valu"`},
		{"SELECT count(*) FROM tx GROUP BY valu", nil, `there is no column "valu"`},
		{"SELECT sum(value) FROM tx", nil, "sum(value): value is a string"},
		{"SELECT value, count(*) FROM tx", nil, "value has many values where functions take all rows together: name it in GROUP BY"},
		{"SELECT *, count(*) FROM tx", nil, "* has many values"},
		{"SELECT value FROM tx WHERE timestamp > 'yesterday'", nil, "timestamp > 'yesterday': it is not a time such as 2026-01-31T10:00:00Z, or in milliseconds since 1970"},
		{"SELECT value FROM tx WHERE amount > 'x'", nil, "amount > 'x': it is not a number of at most 18 digits"},
		{"SELECT value FROM tx WHERE amount > 1e999999999", nil, "amount > '1e999999999': it is not a number of at most 18 digits"},
		{"SELECT value FROM tx WHERE value = 'a' \x00", nil, "at character 40: want the end, got \x00"},
	} {
		if got := answer(c.query, c.args...); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\ngot  %s\nwant %s", c.query, got, c.want)
		}
	}
}

// A condition selects the rows for which a loop says that it holds, whatever the values and literals are.
func TestConditions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, 1, -1, math.MaxInt64, math.MinInt64}))).Draw(t, "numbers")
		with := rapid.Int64Range(-1e18, 1e18).Draw(t, "with")
		operators := map[string]func(n int64) bool{
			"=": func(n int64) bool { return n == with }, "<>": func(n int64) bool { return n != with }, "!=": func(n int64) bool { return n != with },
			"<": func(n int64) bool { return n < with }, "<=": func(n int64) bool { return n <= with },
			">": func(n int64) bool { return n > with }, ">=": func(n int64) bool { return n >= with },
		}
		if len(numbers) > 0 && rapid.Bool().Draw(t, "equal") && numbers[0] > -1e18 && numbers[0] < 1e18 {
			with = numbers[0]
		}
		table := &Table{Columns: []Column{{"n", value.Int}}}
		for _, n := range numbers {
			table.Rows = append(table.Rows, Row{"n": number(n)})
		}
		for operator, takes := range operators {
			want := int64(0)
			for _, n := range numbers {
				if takes(n) {
					want++
				}
			}
			q, err := Parse(fmt.Sprintf("SELECT count(*) FROM t WHERE n %s %d", operator, with), nil)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := q.Run(table); err != nil || r.Rows[0][0].Num != want {
				t.Fatalf("%s: got %v, error %v; want %d", operator, r, err, want)
			}
		}
	})
}

// Any text is a query or refused with a place within it.
func FuzzParse(f *testing.F) {
	f.Add("SELECT sum(amount) FROM tx WHERE name = ? AND timestamp > '1970-01-01' GROUP BY a, \"b\";")
	f.Add("SELECT count(DISTINCT value), * FROM tx WHERE value = 'it''s'")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := Parse(query, []string{"u'1"})
		if refused, ok := err.(*Error); ok && (refused.At < 0 || refused.At > len(query)) {
			t.Errorf("%q: %v", query, err)
		}
		if err == nil {
			_, _ = q.Run(tx)
		}
	})
}
