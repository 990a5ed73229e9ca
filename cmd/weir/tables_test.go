package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
)

const tableDefinitions = `
streams:
  transaction:
    topic: transactions
    timestamp: timestamp
    fields: {user_id: string, shop: string}
    enrich: {service: risk, topic: transactions.enriched}
tables:
  merchant: {topic: merchants, key: id, fields: {risk: string}}
features:
  user_tx: COUNT(1d, transaction, user_id)
  merchant_risk: {expr: merchant.risk, by: shop}
services:
  risk: [user_tx, merchant_risk]
`

// A process reads its tables before it is ready, and before it writes enriched events; what is written later counts at once.
func TestRunWithTables(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "features.yaml")
	if err := os.WriteFile(file, []byte(tableDefinitions), 0o600); err != nil {
		t.Fatal(err)
	}
	flags, _ := servers(t, map[string]int{"transactions": 1, "transactions.enriched": 1, "weir.dead-letters": 1})
	flags[1] = file
	client, err := kgo.NewClient(kgo.SeedBrokers(flags[7]), kgo.ConsumeTopics("transactions.enriched"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	write := func(topic, key, value string) {
		t.Helper()
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(key), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	create := func(topic string) {
		t.Helper()
		request, created := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
		created.Topic, created.NumPartitions, created.ReplicationFactor = topic, 1, 1
		request.Topics, request.TimeoutMillis = append(request.Topics, created), 5000
		if _, err := client.Request(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	transaction := fmt.Sprintf(`{"timestamp": %d, "user_id": "u1", "shop": "m1"}`, time.Now().UnixMilli())
	p := start(t, append([]string{"run"}, flags...)...)
	base := p.address(t)
	testkit.Eventually(t, patience, "waiting for the table", func() (bool, string) {
		code, body := statusOf(t, base+"/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `"name":"tables","ready":false,"error":"waiting for table merchant: fetch: offsets of merchants/0: there is no such topic or partition: check the name, or create the topic"`), body
	})
	ask := func() string {
		code, body := ask(t, "POST", base+"/v1/query", `{"features": ["merchant_risk"], "entities": [{"shop": "m1"}]}`)
		return fmt.Sprint(code, body)
	}
	testkit.Eventually(t, patience, "an answer", func() (bool, string) {
		body := ask()
		return strings.Contains(body, `"merchant_risk":{"value":null,"status":"UNAVAILABLE"`) && !strings.Contains(body, "table_lag"), body
	})
	write("transactions", "u1", transaction)
	create("merchants")
	write("merchants", "m1", `{"id": "m1", "risk": "high"}`)
	ready(t, base)
	if body := ask(); !strings.Contains(body, `"table_lag_ms":`) || !strings.Contains(body, `"merchant_risk":{"value":"high","status":"PRESENT"`) {
		t.Errorf("once the table is read: %s", body)
	}
	enriched := func() string {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		return string(fetches.Records()[0].Value)
	}
	if got := enriched(); !strings.Contains(got, `"merchant_risk":{"value":"high","status":"PRESENT"`) {
		t.Errorf("the enriched event: %s", got)
	}
	write("merchants", "m1", `{"id": "m1", "risk": "low"}`)
	testkit.Eventually(t, patience, "the new row", func() (bool, string) {
		body := ask()
		return strings.Contains(body, `"merchant_risk":{"value":"low"`), body
	})
	write("transactions", "u1", transaction)
	if got := enriched(); !strings.Contains(got, `"merchant_risk":{"value":"low","status":"PRESENT"`) {
		t.Errorf("the next enriched event: %s", got)
	}

	// A table that is new in the definitions answers once it is read, and the process stays ready.
	create("shops")
	write("shops", "m1", `{"id": "m1", "size": 7}`)
	more := strings.Replace(tableDefinitions, "features:", "  size: {topic: shops, key: id, fields: {size: int}}\nfeatures:\n  shop_size: {expr: size.size, by: shop}", 1)
	if err := os.WriteFile(file, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "the new table", func() (bool, string) {
		out, err := weir(t, "query", "--address", base, "shop_size", "merchant_risk", "shop=m1")
		return strings.Contains(out, "7") && strings.Contains(out, "low"), fmt.Sprint(out, err)
	})
	code, metrics := statusOf(t, base+"/metrics")
	for _, want := range []string{`weir_table_rows{table="merchant"} 1`, `weir_table_lag_seconds{table="size"} `, `weir_table_bytes{table="size"} `} {
		if code != http.StatusOK || !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// An enriched event is in a list if a field of its own is, or else not; without the field that is unknown.
func TestEnrichWithLists(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, map[string]int{"transactions": 1, "transactions.enriched": 1, "lists": 1, "weir.dead-letters": 1})
	flags[1] = writeFile(t, t.TempDir(), "features.yaml", `
streams:
  transaction:
    topic: transactions
    timestamp: timestamp
    fields: {user_id: string, ip: string}
    enrich: {service: risk, topic: transactions.enriched}
lists:
  hidden: {topic: lists, type: network}
features:
  user_tx: COUNT(1d, transaction, user_id)
  from_hidden: {expr: user_tx > 0 and event.ip in hidden, stream: transaction}
services:
  risk: [from_hidden]
`)
	client, err := kgo.NewClient(kgo.SeedBrokers(flags[7]), kgo.ConsumeTopics("transactions.enriched"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if out, err := weir(t, append([]string{"list", "add", "hidden", "10.0.0.0/8"}, flags...)...); err != nil {
		t.Fatal(err, out)
	}
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	for ip, want := range map[string]string{`"10.1.2.3"`: "true", `"::ffff:10.1.2.3"`: "true", `"11.1.2.3"`: "false", "null": "null"} {
		value := fmt.Sprintf(`{"timestamp": %d, "user_id": "u1", "ip": %s}`, time.Now().UnixMilli(), ip)
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "transactions", Key: []byte("u1"), Value: []byte(value)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		if got := string(fetches.Records()[0].Value); !strings.Contains(got, `"from_hidden":{"value":`+want+`,`) {
			t.Errorf("%s: %s, want %s", ip, got, want)
		}
	}
}

// A process needs the topics of the tables of which it looks up rows: to answer of all, to apply events of those in enriched ones.
func TestCheckTopicsOfTables(t *testing.T) {
	t.Parallel()
	definitions := strings.Replace(tableDefinitions, "features:", "lists: {blocked: {topic: weir.lists}}\nfeatures:\n  blocked: {expr: shop in list(blocked)}", 1)
	flags, _ := servers(t, map[string]int{"transactions": 1, "transactions.enriched": 1, "weir.dead-letters": 1})
	flags[1] = writeFile(t, t.TempDir(), "features.yaml", definitions)
	missing := func(topic string) string {
		return fmt.Sprintf("FAIL  topic %-22s no topic %s: create it, or set kafka.create_topics; with ACLs, allow Describe on it\n", topic, topic)
	}
	for role, want := range map[string][]string{
		"api": {missing("merchants"), missing("weir.lists")}, "processor": {missing("merchants")}, "processor,api": {missing("merchants"), missing("weir.lists")},
	} {
		out, err := weir(t, append([]string{"run", "--check", "--roles", role}, flags...)...)
		var got []string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "FAIL  topic ") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) || err == nil {
			t.Errorf("%s: error %v; got\n%s\nwant %q", role, err, out, want)
		}
		if (role == "api") == strings.Contains(out, "group weir") {
			t.Errorf("%s: only processors join a group:\n%s", role, out)
		}
	}
	p := start(t, append([]string{"run", "--kafka.create_topics", "--kafka.topic_replication", "1"}, flags...)...)
	ready(t, p.address(t))
	if out, _ := weir(t, append([]string{"run", "--check"}, flags...)...); !strings.Contains(out, "ok    topic weir.lists ") || strings.Contains(out, "FAIL  topic") {
		t.Errorf("a topic was not created:\n%s", out)
	}
}
