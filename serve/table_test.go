package serve

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/tables"
)

// Answers look up rows, and say how old the oldest table is that they need.
func TestTables(t *testing.T) {
	r := defined.Registry(t, `
streams:
  payment: {topic: payments, timestamp: at, fields: {user: string, shop: string, amount: {type: decimal}}}
tables:
  country: {file: countries.csv, key: code, fields: {risky: bool}}
  merchant: {topic: merchants, key: id, fields: {risk: string, limit: {type: decimal}}}
features:
  paid: SUM(7d, payment, amount, user)
  risk: {expr: merchant.risk, by: shop}
  known: {expr: 'merchant.risk ?? "unknown"', by: shop}
  over: {expr: event.amount + paid > merchant.limit, stream: payment, by: shop}
  risky: {expr: country.risky, default: true}
  at_known: {expr: event.shop in merchant and paid > 0, stream: payment}
`)
	row := func(key, value string) *record.Record {
		return &record.Record{Partition: state.Partition{Topic: "merchants"}, Timestamp: noon.UnixMilli() - 5000, Key: []byte(key), Value: []byte(value)}
	}
	merchant, _ := r.Table("merchant")
	contents := tables.New(merchant)
	for key, value := range map[string]string{"m1": `{"id":"m1","risk":"high","limit":30}`, "m2": `{"id":"m2"}`} {
		if bad, err := contents.Take(row(key, value)); bad != nil || err != nil {
			t.Fatal(bad, err)
		}
	}
	var set tables.Set
	held := set.Take(r.Tables)
	b := &bus{T: t, registry: r, store: memory.New()}
	b.handler = newHandler(clocked{b.store}, func(c *setup) {
		c.Registry, c.Tables = func() *features.Registry { return r }, &set
	})
	b.arrive("payments", `{"at": 1532519000000, "user": "u1", "amount": 20}`)
	ask := func(name, more string) string {
		t.Helper()
		w := do(t, b.handler, "POST", queryPath, `{"features": ["`+name+`"], "entities": [{"user": "u1", "shop": "m1", "code": "XX"}]`+more+`}`)
		if w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
		return w.Body.String()
	}
	const unread = `"results":[{"entity":{"user":"u1","shop":"m1","code":"XX"},"features":{"known":{"value":null,"status":"UNAVAILABLE",`
	if got := ask("known", ""); !strings.HasPrefix(got, `{"at":1532520000000,`+unread) {
		t.Errorf("before the table is whole: %s", got)
	}
	held[0].Whole(tables.New(held[0].Table), noon.Add(-700*time.Millisecond))
	held[1].Whole(contents, noon.Add(-1500*time.Millisecond))
	for _, test := range []struct{ name, more, want string }{
		{"risk", "", `"table_lag_ms":1500,"results":[{"entity":{"user":"u1","shop":"m1","code":"XX"},"features":{"risk":{"value":"high","status":"PRESENT","from":1532520000000,"to":1532520000000,"exact":true}}}]`},
		{"risk", `,"at":1532519990000`, `"risk":{"value":"high","status":"LATER_EVENTS",`},
		{"over", "", `"over":{"value":null,"status":"NO_EVENT",`},
		{"over", `,"event":{"stream":"payment","event":{"at":1532519999000,"user":"u1","shop":"m1","amount":10}}`, `"over":{"value":false,"status":"PRESENT",`},
		{"over", `,"event":{"stream":"payment","event":{"at":1532519999000,"user":"u1","shop":"m1","amount":10.01}}`, `"over":{"value":true,"status":"PRESENT",`},
		{"at_known", "", `"at_known":{"value":null,"status":"NO_EVENT",`},
		{"at_known", `,"event":{"stream":"payment","event":{"at":1532519999000,"user":"u1","shop":"m2"}}`, `"at_known":{"value":true,"status":"PRESENT",`},
		{"at_known", `,"event":{"stream":"payment","event":{"at":1532519999000,"user":"u1","shop":"m9"}}`, `"at_known":{"value":false,"status":"PRESENT",`},
		{"at_known", `,"event":{"stream":"payment","event":{"at":1532519999000,"user":"u1","shop":"m9"}}`, `"table_lag_ms":1500,`},
		{"risky", "", `"table_lag_ms":700,"results":[{"entity":{"user":"u1","shop":"m1","code":"XX"},"features":{"risky":{"value":true,"status":"NOT_FOUND",`},
		{"paid", "", `{"at":1532520000000,"results":`},
		{`risk","risky`, "", `"table_lag_ms":1500,`},
	} {
		if got := ask(test.name, test.more); !strings.Contains(got, test.want) {
			t.Errorf("%s%s: got %s, want %s", test.name, test.more, got, test.want)
		}
	}
	w := do(t, b.handler, "POST", queryPath, `{"features": ["known"], "entities": [{"shop": "m1"}, {"shop": "m2"}, {"shop": "m3"}]}`)
	for _, want := range []string{`{"shop":"m1"},"features":{"known":{"value":"high","status":"PRESENT"`, `{"shop":"m2"},"features":{"known":{"value":"unknown","status":"PRESENT"`, `{"shop":"m3"},"features":{"known":{"value":"unknown","status":"NOT_FOUND"`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s lacks %s", w.Body, want)
		}
	}
	w = do(t, b.handler, "POST", "/get-online-features", `{"features": ["v:risk"], "entities": {"shop": ["m1", "m3"]}}`)
	if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, `["high",null]`) && !strings.Contains(got, `"high"`) || !strings.Contains(got, `"table_lag_ms":1500`) {
		t.Errorf("over Feast's protocol: %s", got)
	}
	held[1].Fail(tables.ErrTooLarge)
	if got := ask("known", ""); !strings.Contains(got, unread) {
		t.Errorf("a table that is too large: %s", got)
	}
}
