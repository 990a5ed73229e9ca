package materialize

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
)

const tableDefinitions = `
streams:
  pay: {topic: payments, timestamp: moment, id: no, fields: {shop: string, currency: string, card: string, amount: {type: decimal, scale: 2}}}
tables:
  merchant: {topic: merchants, key: id, fields: {risk: string, limit: {type: decimal, scale: 2}, score: float}}
  rate: {file: rates.ndjson, key: currency, timestamp: since, fields: {value: {type: decimal, scale: 2}}}
lists:
  blocked: {topic: lists}
features:
  risk: {expr: merchant.risk, by: shop}
  score: {expr: merchant.score, by: shop}
  known: {expr: shop in merchant}
  above: {expr: event.amount > merchant.limit, stream: pay, by: shop}
  converted: {expr: 'event.amount * (rate.value ?? 1)', stream: pay, by: currency}
  rated: {expr: currency in rate}
  is_blocked: {expr: card in blocked}
  both: {expr: event.card in blocked and shop in merchant, stream: pay}
`

// tablesInSQL are the same in SQL, over an event e, the last rows m and r of its keys, and the last entry l. Nothing is said of an
// event whose key is null.
var tablesInSQL = map[string]string{
	"risk": "m.risk", "score": "m.score", "above": "e.amount > m.limit",
	"known":      "CASE WHEN e.shop IS NOT NULL THEN coalesce(m.there, false) END",
	"converted":  "CASE WHEN e.currency IS NOT NULL THEN e.amount * coalesce(r.value, 1) END",
	"rated":      "CASE WHEN e.currency IS NOT NULL THEN r.since IS NOT NULL END",
	"is_blocked": "CASE WHEN e.card IS NOT NULL THEN " + blockedInSQL + " END",
	"both":       "CASE WHEN e.shop IS NOT NULL THEN (CASE WHEN e.card IS NOT NULL THEN " + blockedInSQL + " END) AND coalesce(m.there, false) END",
}

const blockedInSQL = "coalesce(l.there AND l.until > e.moment, false)"

// Rows of tables and entries of lists, looked up as of each event, are those of an ASOF JOIN in SQL: among ties, deletes, times that
// go back, and rows that come later.
func TestTablesEqualAsOfJoins(t *testing.T) {
	duckDB(t)
	const n, first = 20_000, int64(1_700_000_000_000)
	random := rand.New(rand.NewPCG(11, 12))
	folder, asked := t.TempDir(), map[string]sqlTable{}
	write := func(name, lines string, columns map[string]string) string {
		file := filepath.Join(folder, name+".ndjson")
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		asked[name] = sqlTable{file, columns}
		return file
	}
	line := func(b *strings.Builder, row map[string]any) {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	maybe := func(v any) any {
		if random.IntN(8) == 0 {
			return nil
		}
		return v
	}
	m := making{Registry: load(t, tableDefinitions), stream: "pay"}
	contents, topics := map[string]*tables.Contents{}, map[string]string{}
	for _, table := range m.Tables {
		contents[table.Name], topics[table.Name] = tables.New(table).Keeping(tables.History), table.Rows.Topic
	}
	take := func(table, key string, at int64, row map[string]any) {
		r := record.Record{Partition: state.Partition{Topic: topics[table]}, Key: []byte(key), Timestamp: at}
		if row != nil {
			r.Value, _ = json.Marshal(row)
		}
		if bad, err := contents[table].Take(&r); bad != nil || err != nil {
			t.Fatal(bad, err)
		}
	}
	moment := func() int64 { return first + random.Int64N(2_000)*1000 }

	var merchants, rates, entries, events strings.Builder
	written := map[string]bool{}
	for i, at := 0, first; i < n/10; i++ {
		at += []int64{0, 1, 3_000, -700}[random.IntN(4)]
		id := fmt.Sprint("m", random.IntN(60))
		row := map[string]any{"id": id, "risk": maybe([]string{"", "low", "hö"}[random.IntN(3)]), "limit": maybe(random.IntN(50)), "score": maybe(random.NormFloat64())}
		if random.IntN(6) == 0 && written[id] {
			take("merchant", id, at, nil)
			row = map[string]any{"id": id}
		} else {
			take("merchant", id, at, row)
			written[id], row["there"] = true, true
		}
		row["n"], row["came"] = i, at
		line(&merchants, row)

		card := fmt.Sprint("c", random.IntN(60))
		entry := map[string]any{"list": "blocked", "value": card}
		until := moment()
		if random.IntN(2) == 0 {
			entry["until"] = time.UnixMilli(until).UTC()
		} else {
			until = at * 2
		}
		removed := random.IntN(3) == 0 && written[card]
		entry["removed"], written[card] = removed, true
		take("blocked", features.ListKey("blocked", card), at, entry)
		line(&entries, map[string]any{"n": i, "came": at, "card": card, "until": until, "there": !removed})
	}
	for i := range n / 10 {
		line(&rates, map[string]any{"n": i, "currency": fmt.Sprint("X", random.IntN(30)), "since": moment(), "value": maybe(random.IntN(900))})
	}
	for i := range n {
		line(&events, map[string]any{
			"no": i, "moment": moment(), "shop": maybe(fmt.Sprint("m", random.IntN(70))), "currency": maybe(fmt.Sprint("X", random.IntN(35))),
			"card": maybe(fmt.Sprint("c", random.IntN(70))), "amount": maybe(random.IntN(50)),
		})
	}
	write("merchants", merchants.String(), map[string]string{
		"n": "BIGINT", "came": "BIGINT", "id": "VARCHAR", "risk": "VARCHAR", "limit": "DECIMAL(18,2)", "score": "DOUBLE", "there": "BOOLEAN",
	})
	write("entries", entries.String(), map[string]string{"n": "BIGINT", "came": "BIGINT", "card": "VARCHAR", "until": "BIGINT", "there": "BOOLEAN"})
	write("events", events.String(), map[string]string{
		"no": "BIGINT", "moment": "BIGINT", "shop": "VARCHAR", "currency": "VARCHAR", "card": "VARCHAR", "amount": "DECIMAL(18,2)",
	})
	file := write("rates", rates.String(), map[string]string{"n": "BIGINT", "currency": "VARCHAR", "since": "BIGINT", "value": "DECIMAL(18,2)"})

	var all []*tables.Contents
	queries := map[string]string{}
	for _, table := range m.Tables {
		c := contents[table.Name]
		if table.File != "" {
			var err error
			if c, err = tables.ReadFile(t.Context(), table, file, tables.History); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, c)
	}
	// The last of several rows that hold from the same moment on counts.
	last := func(table, key string) string {
		return `ASOF LEFT JOIN (SELECT * FROM ` + table + ` QUALIFY row_number() OVER (PARTITION BY ` + key + `, since ORDER BY n DESC) = 1)`
	}
	joined := ` FROM events e
` + last("(SELECT *, max(came) OVER (PARTITION BY id ORDER BY n) AS since FROM merchants)", "id") + ` m ON e.shop = m.id AND e.moment >= m.since
` + last("rates", "currency") + ` r ON e.currency = r.currency AND e.moment >= r.since
` + last("(SELECT *, max(came) OVER (PARTITION BY card ORDER BY n) AS since FROM entries)", "card") + ` l ON e.card = l.card AND e.moment >= l.since`
	for name, of := range tablesInSQL {
		m.names = append(m.names, name)
		queries[name] = "SELECT e.no, " + of + joined
	}
	m.tables, m.inputs = tables.Fixed(all...), []text{{"pay", "pay.ndjson", events.String()}}
	got, _, err := m.run(t)
	if err != nil {
		t.Fatal(err)
	}
	compared, some := compareWithSQL(t, got, asked, queries)
	if compared != n*len(tablesInSQL) || some < compared/4 {
		t.Errorf("%d cells were compared, and %d of them had a value", compared, some)
	}
	t.Logf("%d cells", compared)
}
