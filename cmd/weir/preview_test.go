package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

// weir preview reads the last minutes of the topics, without aborted records, and reports as text or JSON.
func TestPreview(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", twoStreamDefinitions)
	broker := kafkatest.Embedded(t, map[string]int{"pay": 2, "login": 1}).ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.TransactionalID("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	write := func(end kgo.TransactionEndTry, ago time.Duration, amounts ...int) {
		t.Helper()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-ago)
		for _, amount := range amounts {
			r := &kgo.Record{Topic: "pay", Timestamp: at, Value: fmt.Appendf(nil, `{"id":"p%d","at":%d,"user":"u","amount":%d}`, amount, at.UnixMilli(), amount)}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	settings := []string{"preview", "--features", definitions, "--kafka.brokers", broker}
	preview := func(args ...string) (string, error) { t.Helper(); return weir(t, append(settings, args...)...) }
	if _, err := preview(); err == nil || !strings.HasPrefix(message(err), "weir: no record since ") {
		t.Errorf("without records: got error %v", err)
	}
	write(kgo.TryCommit, 50*time.Minute, 1, 2)
	write(kgo.TryCommit, time.Minute, 4, 8)
	write(kgo.TryAbort, time.Minute, 16)
	for _, c := range []struct{ args, want string }{
		{"", "2 records since"}, {"", "\nlogins: COUNT(1h, login, user)\n"}, {"", "  user=u: 12 (of events: 2)\n"},
		{"paid", "  counts only these records, of a window since "}, {"paid --since 55m", "  user=u: 15 (of events: 4)\n"},
		{"paid --since 2h --records 1", "these are the newest; there are more, see --records\n"},
	} {
		out, err := preview(strings.Fields(c.args)...)
		if err != nil || !strings.Contains(out, c.want) || strings.Contains(c.args, "paid") && strings.Contains(out, "logins") {
			t.Errorf("%s: error %v, want %q in\n%s", c.args, err, c.want, out)
		}
	}
	if out, err := preview("paid", "--entities", "0"); err != nil || strings.Contains(out, "user=u") {
		t.Errorf("--entities 0 shows entities or fails: error %v, output\n%s", err, out)
	}
	out, err := preview("paid", "--json")
	var report struct {
		Records  int
		Features []struct {
			Name     string
			Part     bool
			Entities int
			Numbers  struct{ P50 json.Number }
			Examples []struct {
				Entity string
				Answer struct{ Value, Status any }
			}
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &report) != nil || report.Records != 2 || len(report.Features) != 1 {
		t.Fatal(err, out)
	}
	f := report.Features[0]
	if f.Name != "paid" || !f.Part || f.Entities != 1 || f.Numbers.P50 != "12" || f.Examples[0].Entity != "user=u" || f.Examples[0].Answer.Value != 12.0 {
		t.Errorf("unexpected preview of paid: %+v", f)
	}
	for args, want := range map[string]string{
		"pait":             `weir: unknown feature "pait"; did you mean "paid"?`,
		"--since tomorrow": `weir: --since: "tomorrow" is neither a moment such as 2026-01-31T23:59:59Z nor a time ago such as 24h`,
		"--records 0":      "weir: --records must be at least 1, and --entities at least 0",
	} {
		if _, err := preview(strings.Fields(args)...); err == nil || message(err) != want {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	for _, c := range []struct{ broker, timeout, want string }{
		{"127.0.0.1:1", "5s", "weir: read the topics: "},
		{silent(t), "100ms", "weir: not done within 100ms (--timeout): read the topics: "},
	} {
		settings[4] = c.broker
		if _, err := preview("--timeout", c.timeout); err == nil || !strings.HasPrefix(message(err), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	settings[4] = kafkatest.Embedded(t, map[string]int{"pay": 1}).ListenAddrs()[0]
	if _, err := preview(); err == nil || !strings.HasPrefix(message(err), "weir: topic login: ") {
		t.Errorf("without brokers: got error %v", err)
	}
}

// silent is the address of a broker that never answers.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// Records that name a schema cannot be read without a registry. Waiting would not help.
func TestPreviewWithoutRegistry(t *testing.T) {
	t.Parallel()
	definitions := writeFile(t, t.TempDir(), "features.yaml", `
streams:
  pay: {topic: pay, format: avro, timestamp: at, fields: {user: string}}
features:
  pays: COUNT(1h, pay, user)
`)
	broker := kafkatest.Embedded(t, map[string]int{"pay": 1}).ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "pay", Value: []byte{0, 0, 0, 0, 7, 2}}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	const want = "weir: pay/0 at offset 0: schema 7 is needed and cannot be fetched: registry.url is not set"
	if _, err := weir(t, "preview", "--features", definitions, "--kafka.brokers", broker, "--timeout", "20s"); err == nil || message(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A preview reads the tables and lists that features look up.
func TestPreviewOfTables(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", `
streams:
  pay: {topic: pay, timestamp: at, fields: {user: string}}
tables:
  account: {file: accounts.csv, key: id, fields: {level: int}}
  gone: {file: gone.csv, key: user, fields: {v: int}}
lists:
  blocked: {topic: lists, max_rows: 1}
features:
  level: {expr: account.level, by: user}
  blocked_user: {expr: user in blocked}
  v: {expr: gone.v}
`)
	writeFile(t, dir, "accounts.csv", "id,level\nu1,7\n")
	flags, _ := servers(t, map[string]int{"pay": 1, "lists": 1, "weir.dead-letters": 1})
	flags[1] = definitions
	broker := flags[7]
	client, err := kgo.NewClient(kgo.SeedBrokers(broker))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, user := range []string{"u1", "u2"} {
		at := time.Now().Add(-time.Minute)
		r := &kgo.Record{Topic: "pay", Timestamp: at, Value: fmt.Appendf(nil, `{"at":%d,"user":%q}`, at.UnixMilli(), user)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	settings := []string{"--features", definitions, "--kafka.brokers", broker}
	for _, why := range []string{"first", "second"} { // what was said before is no row
		if _, err := weir(t, append([]string{"list", "add", "blocked", "u2", "--why", why}, settings...)...); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := weir(t, append([]string{"list", "show", "blocked"}, settings...)...); err != nil || !strings.Contains(out, "second") {
		t.Errorf("error %v, the list:\n%s", err, out)
	}
	out, err := weir(t, append([]string{"preview", "level", "blocked_user"}, settings...)...)
	for _, want := range []string{"2 records since", "user=u1: 7 (", "user=u2: null (", "user=u1: false (", "user=u2: true ("} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("error %v, want %q in\n%s", err, want, out)
		}
	}
	want := "weir: table gone: open " + dir + "/gone.csv: no such file or directory"
	if _, err := weir(t, append([]string{"preview"}, settings...)...); message(err) != want {
		t.Errorf("got  %v\nwant %s", message(err), want)
	}
	// A server takes the tables that it has.
	base := start(t, append([]string{"run"}, flags...)...).address(t)
	draft, err := json.Marshal(map[string]string{"text": "lists: {mine: {topic: lists}}\nfeatures:\n  x: {expr: user in blocked}\n  y: {expr: user in mine}\n"})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "the preview of a server", func() (bool, string) {
		answer, err := http.Post(base+"/v1/preview", "application/json", bytes.NewReader(draft))
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		body := string(text)
		return err == nil && strings.Contains(body, `{"entity":"user=u2","events":1,"answer":{"value":true,`) &&
			strings.Contains(body, `"note":"table mine cannot answer: no definition in use has it as it is here; weir preview reads it with your own access"`), body
	})
}
