package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/objectstore"
)

// A training set has the rows of tables as of each moment, from files as from topics.
func TestMaterializeTables(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("countries.csv", "code,risky\nCH,false\nXX,true\n")
	definitions := write("features.yaml", `
streams:
  pay: {topic: pay, timestamp: at, id: id, fields: {user: string, shop: string, code: string, amount: int}}
tables:
  merchant: {topic: merchants, key: id, fields: {risk: string, limit: int}}
  country: {file: countries.csv, key: code, fields: {risky: bool}}
features:
  paid: SUM(1h, pay, amount, user)
  risk: {expr: merchant.risk, by: shop}
  over: {expr: 'paid > merchant.limit', by: shop, default: false}
  risky: {expr: country.risky}
  with_row: {expr: event.shop in merchant and paid > 0, stream: pay}
`)
	const minute = 60_000
	first := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC).UnixMilli()
	var events, rows strings.Builder
	broker := kafkatest.Embedded(t, map[string]int{"pay": 1, "merchants": 2}).ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	send := func(topic string, at int, key, value string) {
		t.Helper()
		r := &kgo.Record{Topic: topic, Key: []byte(key), Timestamp: time.UnixMilli(first + int64(at*minute))}
		if value != "" {
			r.Value = []byte(value)
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for at, shop := range []string{"m1", "m1", "m2", "m1", "m3"} {
		code := []string{"CH", "XX"}[at%2]
		event := fmt.Sprintf(`{"id":"e%d","at":%d,"user":"u1","shop":%q,"code":%q,"amount":10}`, at, first+int64(at*minute), shop, code)
		events.WriteString(event + "\n")
		send("pay", at, "u1", event)
	}
	for _, row := range []struct {
		at         int
		key, value string
	}{{-9, "m1", `{"id":"m1","risk":"low","limit":15}`}, {1, "m1", `{"id":"m1","risk":"high","limit":15}`}, {3, "m2", `{"id":"m2","risk":"late"}`}, {-9, "m3", `{"id":"m3","risk":"gone"}`}} {
		fmt.Fprintf(&rows, "{\"topic\":\"merchants\",\"key\":%q,\"timestamp\":%d,\"value\":%s}\n", row.key, first+int64(row.at*minute), row.value)
		send("merchants", row.at, row.key, row.value)
	}
	const header = "id,at,user,shop,code,over,paid,risk,risky,with_row\n"
	line := func(n int, rest string) string {
		return fmt.Sprintf("e%d,%d,u1,%s\n", n, first+int64(n*minute), rest)
	}
	want := header + line(0, "m1,CH,false,10,low,false,true") + line(1, "m1,XX,true,20,high,true,true") + line(2, "m2,CH,false,30,,false,false") +
		line(3, "m1,XX,true,40,high,true,true") + line(4, "m3,CH,false,50,gone,false,true")
	rowsFile, eventsFile := write("rows.ndjson", rows.String()), write("events.ndjson", events.String())
	args := []string{"materialize", "--features", definitions, "--stream", "pay", "--output", "-"}
	got, err := weir(t, append(args, "--input", eventsFile, "--table", "merchant="+rowsFile)...)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v; (-want +from files):\n%s", err, diff)
	}
	got, err = weir(t, append(args, "--from-topics", "--kafka.brokers", broker)...)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v; (-want +from topics):\n%s", err, diff)
	}
	send("merchants", 3, "m3", "") // it is deleted before the last event
	got, err = weir(t, append(args, "--from-topics", "--kafka.brokers", broker)...)
	if want := strings.Replace(want, ",gone,false,true", ",,false,false", 1); err != nil || got != want {
		t.Errorf("error %v; after a delete:\n%s", err, got)
	}
	p := start(t, append(args, "--input", eventsFile)...)
	if err := p.wait(t); err != nil || !strings.HasPrefix(p.out.String(), "id,at,user,code,paid,risky\n") || strings.Count(p.err.String(), "left out: feature ") != 3 {
		t.Errorf("without the rows of a table, what needs them is left out: error %v, output\n%s\n%s", err, p.out.String(), p.err.String())
	}
	for _, c := range []struct {
		more []string
		want string
	}{
		{[]string{"--columns", "paid,risk"}, `weir: --columns: feature "risk" looks up rows of table merchant, which are in topic merchants; add --table merchant=FILE`},
		{[]string{"--table", "merchant"}, `weir: --table: "merchant" is not TABLE=FILE`},
		{[]string{"--table", "merchant=a.csv", "--table", "merchant=b.csv"}, "weir: --table: table merchant is given twice"},
		{[]string{"--table", "merchant=" + rowsFile, "--table", "mercant=b.csv"}, `weir: --table: no column looks up a row of table "mercant"; they look up merchant, country`},
		{[]string{"--columns", "paid", "--table", "country=b.csv"}, `weir: --table: no column looks up a row of table "country"; they look up none`},
		{[]string{"--table", "merchant=" + rowsFile, "--output", rowsFile}, "weir: --table: " + rowsFile + ", the file of table merchant, is the --output"},
		{[]string{"--table", "merchant=none.csv"}, "weir: --table: open none.csv: no such file or directory"},
	} {
		if _, err := weir(t, append(append(args, "--input", eventsFile), c.more...)...); message(err) != c.want {
			t.Errorf("%s: got %v, want %s", c.more, message(err), c.want)
		}
	}
}

// As served, a row holds since it was written, by event time since its own timestamp.
func TestMaterializeRowsWrittenLate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "features.yaml", `
streams:
  pay: {topic: pay, timestamp: at, id: id, fields: {shop: string}}
tables:
  merchant: {topic: merchants, key: id, timestamp: since, fields: {risk: string}}
features:
  risk: {expr: merchant.risk, by: shop}
`)
	writeFile(t, folder, "rows.ndjson", `{"topic":"merchants","key":"m","timestamp":1767261900000,"value":{"id":"m","since":1767261000000,"risk":"high"}}`)
	writeFile(t, folder, "events.ndjson", `{"topic":"pay","key":null,"timestamp":1767261600000,"value":{"id":"e","at":1767261600000,"shop":"m"}}`)
	for _, c := range []struct{ as, want string }{{"events", "high"}, {"served", ""}} {
		got, err := weir(t, "materialize", "--features", folder, "--stream", "pay", "--input", filepath.Join(folder, "events.ndjson"),
			"--table", "merchant="+filepath.Join(folder, "rows.ndjson"), "--as", c.as, "--columns", "risk", "--output", "-")
		if want := "id,at,shop,risk\ne,1767261600000,m," + c.want + "\n"; err != nil || got != want {
			t.Errorf("--as %s: error %v, got\n%s", c.as, err, got)
		}
	}
}

// A table of an object is read like one of a file.
func TestMaterializeTableOfAnObject(t *testing.T) {
	b, folder := objectstore.New(t), t.TempDir()
	definitions := filepath.Join(folder, "features.yaml")
	text := "streams:\n  pay: {topic: pay, timestamp: at, id: id, fields: {code: string}}\n" +
		"tables:\n  country: {file: '" + b.Put(t, "countries.csv", []byte("code,risky\nXX,true\n")) + "', key: code, fields: {risky: bool}}\n" +
		"features:\n  risky: {expr: country.risky}\n"
	if err := os.WriteFile(definitions, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	events := b.Put(t, "events.ndjson", []byte(`{"id":"e1","at":1767261600000,"code":"XX"}`))
	args := []string{"materialize", "--features", definitions, "--stream", "pay", "--output", "-", "--input", events}
	if got, err := weir(t, args...); err != nil || got != "id,at,code,risky\ne1,1767261600000,XX,true\n" {
		t.Errorf("error %v; got\n%s", err, got)
	}
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		r.URL.Path = strings.Replace(r.URL.Path, "countries", "none", 1)
		store.ServeHTTP(w, r)
	})
	want := "weir: --table: " + b.URL("countries.csv") + ": there is no such object, or no such bucket"
	if _, err := weir(t, args...); message(err) != want {
		t.Errorf("got  %v\nwant %s", message(err), want)
	}
}
