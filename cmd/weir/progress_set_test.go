package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// `weir progress set` refuses these, and each message says what to use instead.
func TestProgressSetRefuses(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, map[string]int{"transactions": 2})
	for _, b := range []struct{ args, want string }{
		{"--to start", "requires at least 1 arg(s), only received 0; usage: weir progress set TOPIC[/PARTITION]... --to start|end|OFFSET [flags]"},
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
		{"logins --to start", "no topic logins: create it, or set kafka.create_topics; with ACLs, allow Describe on it"},
		{"transactions --to start --features /none.yaml", "--features: features names /none.yaml, which cannot be read: no such file or directory"},
	} {
		out, err := weir(t, slices.Concat([]string{"progress", "set"}, flags, strings.Fields(b.args))...)
		if fmt.Sprint(err) != b.want && (err == nil || message(err) != b.want) {
			t.Errorf("%s\ngot  %v, output %s\nwant %s", b.args, err, out, b.want)
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
	t.Parallel()
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
	if out := set("transactions/0", "--to", "end"); out != want+"nothing was changed: repeat with --yes to do it\n" {
		t.Errorf("without --yes, got:\n%s\nwant:\n%s", out, want)
	}
	if got := applied(); got != "- -" {
		t.Errorf("without --yes the offsets became %s, want no change", got)
	}
	// This test's server does not support replication.
	const done = "done\nit is unknown whether Redis' replicas have it: section (replication) is not supported\n"
	if out := set("transactions/0", "--to", "end", "--yes"); out != want+done {
		t.Errorf("with --yes, got:\n%s\nwant:\n%s", out, want)
	}
	if got := applied(); got != "3 -" {
		t.Errorf("applied %s, want 3 -", got)
	}
	const stays = "transactions/0: to offset 1 of the log, which holds 0 to 2\n  4 shards are there or further, and will stay\nnothing changes\n"
	if out := set("transactions/0", "--to", "1", "--yes"); out != stays {
		t.Errorf("going back without --again, got:\n%s\nwant:\n%s", out, stays)
	}
	// A partition named twice is placed once.
	out := set("transactions/0", "transactions", "--to", "1", "--again", "--yes")
	if strings.Count(out, "transactions/0: ") != 1 || !strings.Contains(out, "AGAIN, and count twice\n") || !strings.HasSuffix(out, done) {
		t.Errorf("going back with --again, unexpected output:\n%s", out)
	}
	if got := applied(); got != "1 1" {
		t.Errorf("applied %s, want 1 1", got)
	}
}

// A placement may be lost if Redis fails over to a replica that lacks it. The operator is warned of
// that, and only then.
func TestProgressSetReportsReplicas(t *testing.T) {
	t.Parallel()
	broker, server := kafkatest.Embedded(t, allTopics), redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, server.Addr())
	redistest.NewReplica(t, link.Addr())
	set := func(to string) (string, error) {
		return weir(t, "progress", "set", "transactions/0", "--to", to, "--again", "--yes",
			"--features", shipped, "--shards", "4", "--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", server.Addr())
	}
	out, err := set("start")
	if err != nil || !strings.HasSuffix(out, "\ndone\n") {
		t.Fatalf("want done without an error: output %s, error %v", out, err)
	}
	link.Hang()
	defer link.Heal()
	writeThree(t, broker.ListenAddrs()[0])
	want := fmt.Sprintf("it is done, but 1 of 1 replicas of the Redis master %s lacked it after 3s: if one of them takes over now, "+
		"the partitions are where they were before: look with weir progress, and run this again if they are", server.Addr())
	if out, err = set("end"); err == nil || err.Error() != want || !strings.HasSuffix(out, "\ndone\n") {
		t.Errorf("got  output %s, error %v\nwant done, and the error %s", out, err, want)
	}
}

// A partition that is placed before any processor has applied it belongs to the plan of the processors: the definitions
// with the existing generations of series.
func TestProgressSetUnderThePlanOfProcessors(t *testing.T) {
	t.Parallel()
	flags, redisAddress := servers(t, allTopics)
	file := filepath.Join(t.TempDir(), "features.yaml")
	flags[1] = file
	define := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const tx = "streams:\n  tx: {topic: transactions, timestamp: at, fields: {user: string}}\n"
	define(tx + "features: {paid: 'COUNT(1d, tx, user, tile=1h)'}\n")
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	p.stop()
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	define(tx + "  in: {topic: logins, timestamp: at, fields: {user: string}}\nfeatures: {paid: 'COUNT(5d, tx, user, tile=1h)', seen: 'COUNT(1d, in, user)'}\n")
	look(t, "", append([]string{"progress", "set", "logins", "--to", "start", "--yes"}, flags...)...)
	client := redis.NewClient(&redis.Options{Addr: redisAddress})
	defer client.Close()
	store := redisstore.New(client, config.Default().Namespace, 4)
	registry, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	plan, history, err := store.Bind(t.Context(), registry.Plan())
	if err != nil || plan.Version == registry.Plan().Version {
		t.Fatalf("the processors' plan is %v, want another than that of the definitions; error %v", plan, err)
	}
	if !slices.ContainsFunc(history.PlanEpochs, func(e state.PlanEpoch) bool { return e.Topic == "logins" && e.Version == plan.Version }) {
		t.Errorf("logins are not placed under %s: %+v", plan.Version, history.PlanEpochs)
	}
}
