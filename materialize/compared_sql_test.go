package materialize

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// comparedInSQL are windows that are compared with the event in hand, and the same in SQL: what is computed of the events t, in
// which span before a row e, in milliseconds, and which of them count.
var comparedInSQL = map[string]struct{ feature, of, span, where string }{
	"alike":     {`COUNT(1h, pay, user, where='abs(amount - event.amount) < 0.01')`, `count(*)`, `3600000`, `abs(t.amount - e.amount) < 0.01`},
	"elsewhere": {`SUM(3h, pay, amount, user, where='ok and shop != event.shop')`, `coalesce(sum(t.amount), 0)`, `10800000`, `t.ok and t.shop <> e.shop`},
	"here":      {`COUNT(7d, pay, user, where='ip == event.ip')`, `count(*)`, `604800000`, `t.ip = e.ip`},
	"higher":    {`MAX(1d, pay, score, user, where='score < event.score or ip == event.ip')`, `max(t.score)`, `86400000`, `t.score < e.score or t.ip = e.ip`},
	"shops":     {`COUNT_DISTINCT(6h, pay, user, shop, where='not (ip == event.ip)')`, `count(DISTINCT t.shop)`, `21600000`, `NOT (t.ip = e.ip)`},
	"before": {
		`MIN(1d, pay, amount, user, where='amount > event.amount', exclude=current_time)`, `min(t.amount)`, `86400000`, `t.amount > e.amount AND t.moment < e.moment`,
	},
	"triple": {
		`COUNT(1d, pay, user, where='amount * 3 > event.amount + 1 and (ip ?? "none") != (event.ip ?? "none")')`, `count(*)`, `86400000`,
		`t.amount * 3 > e.amount + 1 AND coalesce(t.ip, 'none') <> coalesce(e.ip, 'none')`,
	},
	"begins": {`COUNT(1d, pay, user, where='ip startsWith event.ip')`, `count(*)`, `86400000`, `starts_with(t.ip, e.ip)`},
}

// sqlProgram answers queries over files, each a table: for each, a line with its name, and the number and the value of a row.
const sqlProgram = `
import json, sys, duckdb
asked = json.load(sys.stdin)
con = duckdb.connect()
con.execute("SET threads = 1")
for name, of in asked["tables"].items():
    columns = ", ".join(f'"{c}": \'{t}\'' for c, t in of["columns"].items())
    con.execute(f"CREATE TABLE {name} AS SELECT * FROM read_json(?, format = 'newline_delimited', columns = {{{columns}}})", [of["file"]])
for name, query in asked["queries"].items():
    for no, v in con.execute(query).fetchall():
        text = "" if v is None else str(v).lower() if isinstance(v, bool) else repr(v) if isinstance(v, float) else str(v)
        print(json.dumps([name, str(no), text]))
`

// sqlTable is a file of JSON lines as a table in SQL.
type sqlTable struct {
	File    string            `json:"file"`
	Columns map[string]string `json:"columns"` // their types
}

// compareWithSQL compares a training set, whose first column is the number of a row, with what queries answer for each name and row.
func compareWithSQL(t *testing.T, got string, asked map[string]sqlTable, queries map[string]string) (compared, some int) {
	t.Helper()
	table, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cells := map[[2]string]string{}
	for _, row := range table[1:] {
		for i, name := range table[0] {
			cells[[2]string{name, row[0]}] = row[i]
		}
	}
	question, err := json.Marshal(map[string]any{"tables": asked, "queries": queries})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), duckDB(t), "-c", sqlProgram)
	cmd.Stdin, cmd.Stderr, cmd.Env = bytes.NewReader(question), os.Stderr, append(os.Environ(), "PYTHONIOENCODING=utf-8")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var want [3]string
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		cell, ok := cells[[2]string{want[0], want[1]}]
		if compared++; cell != "" && cell != "0" && cell != "false" {
			some++
		}
		if !ok || !near(cell, want[2], 1e-12) {
			t.Fatalf("%s of row %s is %q, and %q in SQL", want[0], want[1], cell, want[2])
		}
	}
	return compared, some
}

// duckDB is a Python with DuckDB.
func duckDB(t *testing.T) string {
	t.Helper()
	python := os.Getenv("WEIR_TEST_DUCKDB")
	if python == "" {
		server.Skip(t, errors.New("set WEIR_TEST_DUCKDB to a Python that has what .ci/requirements.txt names"))
	}
	return python
}

// Windows that are compared with the event in hand equal the same windows in SQL, over events with nulls, ties, empty, long and
// strange texts, and amounts at the limits of their type.
func TestComparedWindowsEqualSQL(t *testing.T) {
	duckDB(t)
	definitions := `
streams:
  pay:
    topic: payments
    timestamp: moment
    fields: {user: string, ip: {type: string, max_bytes: 1000}, shop: string, amount: {type: decimal, scale: 2}, score: float, ok: bool}
features:
`
	queries, names := map[string]string{}, []string{}
	for name, c := range comparedInSQL {
		definitions += "  " + name + ": " + c.feature + "\n"
		names = append(names, name)
		queries[name] = fmt.Sprintf(`SELECT e.no, (SELECT %s FROM events t WHERE t."user" = e."user" AND t.moment > e.moment - %s AND t.moment <= e.moment AND (%s)) FROM events e`,
			c.of, c.span, c.where)
	}
	lines, spine := eventsInHand(rand.New(rand.NewPCG(9, 10)), 3000)
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	m := making{Registry: load(t, definitions), names: names, spine: spine, inputs: []text{{"pay", "pay.ndjson", lines}}}
	got, summary, err := m.run(t)
	if err != nil || summary.Capped > 0 {
		t.Fatal(err, summary)
	}
	events := sqlTable{file, map[string]string{
		"no": "BIGINT", "moment": "BIGINT", "user": "VARCHAR", "ip": "VARCHAR", "shop": "VARCHAR", "amount": "DECIMAL(18,2)", "score": "DOUBLE", "ok": "BOOLEAN",
	}}
	compared, some := compareWithSQL(t, got, map[string]sqlTable{"events": events}, queries)
	if compared != 3000*len(comparedInSQL) || some < compared/2 {
		t.Errorf("%d cells were compared, and %d of them had a value", compared, some)
	}
}

// eventsInHand returns n events as lines, and a table with the same events in hand. Fields are often null.
func eventsInHand(random *rand.Rand, n int) (lines, spine string) {
	ips := []string{"", "a", "ab", "é", "event.ip", "|", `"`, "'", strings.Repeat("x", 300), strings.Repeat("x", 300) + "y"}
	amounts := []string{"0", "-0.01", "90071992547409.91", "-90071992547409.91"}
	at := int64(1_700_000_000_000)
	var b, table strings.Builder
	table.WriteString("no,at,user,event.ip,event.shop,event.amount,event.score\n")
	for i := range n {
		at += []int64{0, 0, 1, 500, 30_000, 120_000}[random.IntN(6)]
		moment := at - []int64{0, 0, 0, 7, 60_000}[random.IntN(5)]
		fields := []string{
			strconv.Quote(ips[random.IntN(len(ips))]), fmt.Sprintf(`"m%d"`, random.IntN(6)),
			pick(random, fmt.Sprintf("%d.%s", random.IntN(12), []string{"00", "01", "50", "99"}[random.IntN(4)]), amounts...),
			[]string{"0", "0.5", "-1.25", "1e300", "-1e300", "5e-324"}[random.IntN(6)], strconv.FormatBool(random.IntN(2) == 0),
		}
		for f := range fields {
			if random.IntN(8) == 0 {
				fields[f] = "null"
			}
		}
		user := fmt.Sprint("u", random.IntN(20))
		fmt.Fprintf(&b, `{"no":%d,"moment":%d,"user":%q,"ip":%s,"shop":%s,"amount":%s,"score":%s,"ok":%s}`+"\n",
			i, moment, user, fields[0], fields[1], fields[2], fields[3], fields[4])
		for f, of := range fields {
			of = strings.ReplaceAll(of, `\"`, `""`)
			fields[f] = strings.TrimPrefix(of, "null")
		}
		fmt.Fprintf(&table, "%d,%d,%s,%s\n", i, moment, user, strings.Join(fields[:4], ","))
	}
	return b.String(), table.String()
}
