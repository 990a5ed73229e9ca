package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// `weir progress set` refuses these, and each message says what to use instead.
func TestProgressSetRefuses(t *testing.T) {
	flags, _ := servers(t, map[string]int{"transactions": 2})
	for _, b := range []struct{ args, want string }{
		{"--to start", "requires at least 1 arg(s), only received 0"},
		{"transactions", `required flag(s) "to" not set`},
		{"transactions --to begin", `--to: "begin" is neither start nor end nor an offset`},
		{"transactions --to=-1", `--to: "-1" is neither start nor end nor an offset`},
		{"payments --to start", `payments: no stream reads the topic "payments", only logins, transactions`},
		{"payments/0 --to start", `payments/0: no stream reads the topic "payments", only logins, transactions`},
		{"transactions/2 --to start", "transactions/2: the topic has the partitions 0 to 1"},
		{"transactions/-1 --to start", "transactions/-1: the topic has the partitions 0 to 1"},
		{"transactions/ --to start", "transactions/: the topic has the partitions 0 to 1"},
		{"transactions/one --to start", "transactions/one: the topic has the partitions 0 to 1"},
		{"transactions --to 1", "offset 1 is not in the log of transactions/0, which is empty at offset 0: give one from 0 to 0, or start or end"},
		{"logins --to start", "no topic logins: create it, or set kafka.create_topics"},
		{"transactions --to start --features /none.yaml", "/none.yaml: cannot read definitions: no such file or directory"},
	} {
		out, err := weir(t, slices.Concat([]string{"progress", "set"}, flags, strings.Fields(b.args))...)
		if fmt.Sprint(err) != b.want && (err == nil || message(err) != b.want) {
			t.Errorf("%s\ngot  %v %s\nwant %s", b.args, err, out, b.want)
		}
	}
}

// writeThree writes three records to each partition of transactions.
func writeThree(t *testing.T, broker string) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(broker)}
	for partition := range allTopics["transactions"] {
		records := make([]kafka.Record, 3)
		for i := range records {
			records[i] = kafka.Record{Time: time.Now(), Value: kafka.NewBytes([]byte("{}"))}
		}
		_, err := client.Produce(t.Context(), &kafka.ProduceRequest{
			Topic: "transactions", Partition: partition, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The command explains its effect first, and changes nothing without --yes.
func TestProgressSet(t *testing.T) {
	flags, _ := servers(t, allTopics)
	writeThree(t, flags[7])
	set := func(args ...string) string {
		t.Helper()
		return look(t, "", slices.Concat([]string{"progress", "set"}, args, flags)...)
	}
	applied := func() string {
		t.Helper()
		out := look(t, "", append([]string{"progress"}, flags...)...)
		var columns []string
		for _, row := range regexp.MustCompile(`(?m)^transactions +\d +\d+ +\d+ +(\S+)`).FindAllStringSubmatch(out, -1) {
			columns = append(columns, row[1])
		}
		return strings.Join(columns, " ")
	}
	const want = `transactions/0: to offset 3 of the log, which holds 0 to 2
  4 shards have no progress yet, and will begin there
  up to 3 offsets will NOT be applied; features say so in complete_since
`
	if out := set("transactions/0", "--to", "end"); out != want+"nothing was changed; with --yes it is\n" {
		t.Errorf("told:\n%s\nwant:\n%s", out, want)
	}
	if got := applied(); got != "- -" {
		t.Errorf("applied %s by telling what it would mean, want nothing", got)
	}
	// This test's server does not support replication.
	const done = "done\nit is unknown whether Redis' replicas have it: section (replication) is not supported\n"
	if out := set("transactions/0", "--to", "end", "--yes"); out != want+done {
		t.Errorf("done:\n%s\nwant:\n%s", out, want)
	}
	if got := applied(); got != "3 -" {
		t.Errorf("applied %s, want 3 -", got)
	}
	const stays = "transactions/0: to offset 1 of the log, which holds 0 to 2\n  4 shards are there or further, and will stay\nnothing changes\n"
	if out := set("transactions/0", "--to", "1", "--yes"); out != stays {
		t.Errorf("back without --again:\n%s\nwant:\n%s", out, stays)
	}
	// A partition named twice is placed once.
	out := set("transactions/0", "transactions", "--to", "1", "--again", "--yes")
	if strings.Count(out, "transactions/0: ") != 1 || !strings.Contains(out, "AGAIN, and count twice\n") || !strings.HasSuffix(out, done) {
		t.Errorf("back with --again:\n%s", out)
	}
	if got := applied(); got != "1 1" {
		t.Errorf("applied %s, want 1 1", got)
	}
}

// A placement may be lost if Redis fails over to a replica that lacks it. The operator is warned of
// that, and only then.
func TestProgressSetReportsReplicas(t *testing.T) {
	broker, redis := kafkatest.Embedded(t, allTopics), redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, redis.Addr())
	redistest.NewReplica(t, link.Addr())
	set := func(to string) (string, error) {
		return weir(t, "progress", "set", "transactions/0", "--to", to, "--again", "--yes",
			"--features", shipped, "--shards", "4", "--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", redis.Addr())
	}
	out, err := set("start")
	if err != nil || !strings.HasSuffix(out, "\ndone\n") {
		t.Fatalf("%s, %v", out, err)
	}
	link.Hang()
	defer link.Heal()
	writeThree(t, broker.ListenAddrs()[0])
	want := fmt.Sprintf("it is done, but 1 of 1 replicas of the Redis master %s lacked it after 3s: if one of them takes over now, "+
		"the partitions are where they were before: look with weir progress, and run this again if they are", redis.Addr())
	if out, err = set("end"); err == nil || err.Error() != want || !strings.HasSuffix(out, "\ndone\n") {
		t.Errorf("%s, %v", out, err)
	}
}
