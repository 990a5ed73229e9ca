package featuretest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A test gives rows to tables; each holds from its moment on.
func TestTables(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("definitions.yaml", `
streams:
  pay: {topic: payments, timestamp: at, fields: {user: string, card: string, amount: float}}
tables:
  merchant: {topic: merchants, format: debezium, key: id, fields: {risk: {type: string, path: rating.risk}, score: int, twice: {type: int, expr: score * 2}}}
  country: {file: countries.csv, key: code, match: old == nil or old != "yes", timestamp: {path: since, unit: datetime}, fields: {risky: bool}}
lists:
  blocked: {topic: weir.lists}
features:
  in_list: {expr: user in blocked}
  paid_by_blocked: {expr: 'event.card in blocked ? paid : 0', stream: pay}
  paid: SUM(1h, pay, amount, user)
  risk: {expr: merchant.risk}
  score: {expr: paid + merchant.twice, by: shop}
  risky: {expr: country.risky, default: true}
`)
	ask := func(tables, question string) string {
		t.Helper()
		path := write("some_test.yaml", `
tables: {country: [{code: CH, risky: false}, {code: XX, risky: false, at: 5m}]}
tests:
  - name: t
    tables: {`+tables+`}
    events: [pay: {at: 1m, user: u, amount: 10}]
    questions: [{`+question+`}]
`)
		r, err := Run(t.Context(), path)
		if err != nil {
			return strings.ReplaceAll(err.Error(), path, "FILE")
		}
		return fmt.Sprint(r.Tests[0].Failures)
	}
	const rows = "merchant: [{id: m1, risk: low, score: 1}, {id: m1, risk: high, score: 7, at: 3m}, {id: m2}]"
	for _, c := range [][3]string{
		{rows, "at: 2m, entity: {id: m1, code: CH}, expect: {risk: low, risky: false}", "[]"},
		{rows, "at: 3m, entity: {id: m1, code: XX}, expect: {risk: high, risky: {value: true, status: NOT_FOUND}}", "[]"},
		{rows, "at: 5m, entity: {id: m2, code: XX}, expect: {risk: {value: null, status: NULL_VALUE}, risky: false}", "[]"},
		{rows, "at: 3m, entity: {id: m3}, expect: {risk: {value: null, status: NOT_FOUND}}", "[]"},
		{rows, "at: 3m, entity: {shop: m1, user: u}, expect: {score: 24}", "[]"},
		{rows, "at: 3m, entity: {id: m1}, expect: {risk: low}", `risk of id=m1 at 2026-01-01T00:03:00Z [+3m]: expected "low", got "high"`},
		{"blocked: [{value: u, at: 2m, until: 4m}]", "at: 3m, entity: {user: u}, expect: {in_list: true}", "[]"},
		{"blocked: [{value: u, at: 2m, until: 4m}]", "at: 4m, entity: {user: u}, expect: {in_list: false}", "[]"},
		{"blocked: [{value: u, at: 2m}]", "at: 1m, entity: {user: u}, expect: {in_list: {value: false, status: NOT_FOUND}}", "[]"},
		{"blocked: [{value: v, at: 2m}]", "at: 3m, entity: {user: u}, event: {pay: {card: v}}, expect: {paid_by_blocked: 10}", "[]"},
		{"blocked: [{value: u, at: 2m}]", "at: 3m, entity: {user: u}, event: {pay: {card: v}}, expect: {paid_by_blocked: 0}", "[]"},
		{"blocked: [{value: u, at: 2m}]", "at: 3m, entity: {user: u}, event: {pay: {card: null}}, expect: {paid_by_blocked: 0}", "[]"},
		{"blocked: [{value: u, at: 2m}]", "at: 3m, entity: {user: u}, expect: {paid_by_blocked: {value: null, status: NO_EVENT}}", "[]"},
		{"", "at: 3m, entity: {id: m1}, expect: {risk: {value: null, status: NOT_FOUND}}", "[]"},
		{"mercant: [{id: m1}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", `FILE:5:14: unknown table "mercant"; did you mean "merchant"?`},
		{"merchant: [{id: m1, risc: low}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", `FILE:5:25: unknown field "risc" of table merchant; did you mean "risk"?`},
		{"merchant: [{id: m1, twice: 2}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", "FILE:5:25: field twice is computed from others: give those"},
		{"merchant: [{risk: low}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", "FILE:5:25: the row cannot be used: id: the field id is required"},
		{"merchant: [{id: m1, score: x}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", "FILE:5:25: the row cannot be used: score: expected"},
		{"country: [{code: DE, old: \"yes\"}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", `FILE:5:24: table country does not take the row: its match is old == nil or old != "yes"`},
		{"merchant: [{id: m1, at: soon}]", "at: 3m, entity: {id: m1}, expect: {risk: low}", "FILE:5:38: at: expected a moment"},
		{"merchant: m1", "at: 3m, entity: {id: m1}, expect: {risk: low}", "FILE:5:24: the rows of table merchant: expected a list"},
		{"merchant: [m1]", "at: 3m, entity: {id: m1}, expect: {risk: low}", "FILE:5:25: expected a row: fields with their values, such as {merchant_id: m1, category: toys}"},
	} {
		if got := ask(c[0], c[1]); got != c[2] && (c[2] == "[]" || !strings.Contains(got, c[2])) {
			t.Errorf("%s, %s:\ngot  %s\nwant %s", c[0], c[1], got, c[2])
		}
	}
}
