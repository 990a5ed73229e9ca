package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

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
