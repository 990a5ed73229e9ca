package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// What `weir progress set` refuses, each with what to give instead.
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

// What it means is told first, and nothing is changed before --yes.
func TestProgressSet(t *testing.T) {
	flags, _ := servers(t, allTopics)
	client := &kafka.Client{Addr: kafka.TCP(flags[7])}
	for partition := range 2 {
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
	if out := set("transactions/0", "--to", "end", "--yes"); out != want+"done\n" {
		t.Errorf("done:\n%s\nwant:\n%s", out, want)
	}
	if got := applied(); got != "3 -" {
		t.Errorf("applied %s, want 3 -", got)
	}
	const stays = "transactions/0: to offset 1 of the log, which holds 0 to 2\n  4 shards are there or further, and will stay\nnothing changes\n"
	if out := set("transactions/0", "--to", "1", "--yes"); out != stays {
		t.Errorf("back without --again:\n%s\nwant:\n%s", out, stays)
	}
	// Named twice, a partition is placed once.
	out := set("transactions/0", "transactions", "--to", "1", "--again", "--yes")
	if strings.Count(out, "transactions/0: ") != 1 || !strings.Contains(out, "AGAIN, and count twice\n") || !strings.HasSuffix(out, "done\n") {
		t.Errorf("back with --again:\n%s", out)
	}
	if got := applied(); got != "1 1" {
		t.Errorf("applied %s, want 1 1", got)
	}
}
