package preview

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
)

const overTables = `
streams:
  pay: {topic: payments, timestamp: at, fields: {user: string, shop: string, amount: decimal}}
  login: {topic: logins, timestamp: at, fields: {user: string, ip: string}}
  seat: {topic: seats, timestamp: at, fields: {shop: int, ip: string}}
tables:
  merchant: {file: m.csv, key: id, fields: {risk: string, limit: decimal}}
  absent: {topic: absent, key: user, fields: {v: int}}
lists:
  blocked: {topic: lists}
  networks: {topic: lists, type: network}
features:
  paid: SUM(5m, pay, amount, user)
  risk: {expr: merchant.risk, by: shop}
  over: {expr: paid > merchant.limit, by: shop}
  user_blocked: {expr: user in blocked}
  ip_hidden: {expr: ip in list(networks)}
  nowhere: {expr: merchant.risk}
  both: {expr: 'user_blocked and ip_hidden or risk == "high"'}
  v: {expr: absent.v}
`

// Features that look up rows are asked about the entities of all events that have their keys, with the rows of now.
func TestTables(t *testing.T) {
	registry := defined.Registry(t, overTables)
	contents := map[string]*tables.Contents{}
	for _, table := range registry.Tables {
		if table.Name == "absent" {
			continue
		}
		contents[table.Name] = tables.NewDecoded(table, record.NewJSONDecoder([]*record.Stream{table.Rows}))
	}
	for _, row := range []struct{ of, value string }{
		{"merchant", `{"id":"m1","risk":"high","limit":5}`}, {"merchant", `{"id":"m2","risk":null,"limit":1}`},
		{"blocked", `{"list":"blocked","value":"u1"}`}, {"blocked", `{"list":"blocked","value":"u2","until":"2026-01-01T11:59:59Z"}`},
		{"networks", `{"list":"networks","value":"10.0.0.0/8"}`},
	} {
		table, _ := registry.Table(row.of)
		r := &record.Record{Partition: state.Partition{Topic: table.Rows.Topic}, Value: []byte(row.value), Timestamp: now}
		if bad, err := contents[row.of].Take(r); bad != nil || err != nil {
			t.Fatal(bad, err)
		}
	}
	held := tables.Fixed(contents["merchant"], contents["blocked"], contents["networks"])
	pays, logins, seats := partition("payments", 0), partition("logins", 0), partition("seats", 0)
	for _, e := range []string{`"user":"u1","shop":"m1","amount":3`, `"user":"u2","shop":"m2","amount":3`, `"user":"u3","shop":"m3","amount":3`} {
		pays.add(now-minute, `{"at":%d,%s}`, now-minute, e)
	}
	for _, e := range []string{`"user":"u1","ip":"10.1.1.1"`, `"user":"u4","ip":"11.1.1.1"`} {
		logins.add(now-minute, `{"at":%d,%s}`, now-minute, e)
	}
	seats.add(now-minute, `{"at":%d,"shop":1,"ip":"10.2.2.2"}`, now-minute)
	why := errors.New("no definition in use has it")
	cfg := Config{
		Registry: registry, Features: registry.Features, Logs: []Log{pays, logins, seats}, Since: now - 10*minute, Now: now, MaxRecords: 100, MaxRecordBytes: 500, Examples: 9,
		Tables: held.For(registry.Tables, why),
	}
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ topics, said string }{
		"paid":         {"payments", "user=u1: 3; user=u2: 3; user=u3: 3"},
		"risk":         {"payments", `shop=m1: "high"; shop=m2: null; shop=m3: null`}, // a seat's shop is of another type
		"over":         {"payments", "user=u1 shop=m1: false; user=u2 shop=m2: true; user=u3 shop=m3: null"},
		"user_blocked": {"logins payments", "user=u1: true; user=u2: false; user=u3: false; user=u4: false"},
		"ip_hidden":    {"logins seats", "ip=10.1.1.1: true; ip=10.2.2.2: true; ip=11.1.1.1: false"},
		"both":         {"", "no stream has a field for each of its keys, user and ip and shop: ask it of a server, or in a test"},
		"nowhere":      {"", "no stream has a field for each of its keys, id: ask it of a server, or in a test"},
		"v":            {"logins payments", "table absent cannot answer: no definition in use has it"},
	} {
		f, _ := registry.Feature(name)
		if got := strings.Join(Topics(registry, []*features.Feature{f}), " "); got != want.topics {
			t.Errorf("%s is previewed on %q, want %q", name, got, want.topics)
		}
		var text strings.Builder
		shown := feature(t, report, name)
		shown.writeText(&text)
		var said []string
		for _, line := range strings.Split(text.String(), "\n") {
			if entity, _, ok := strings.Cut(line, " (of events: "); ok {
				said = append(said, strings.TrimSpace(entity))
			}
		}
		if slices.Sort(said); shown.Note != "" {
			said = []string{shown.Note}
		}
		if got := strings.Join(said, "; "); got != want.said || !strings.Contains(text.String(), strings.TrimSuffix(shown.Note, "\n")) {
			t.Errorf("%s:\ngot  %s\nwant %s\n%s", name, got, want.said, text.String())
		}
	}
}
