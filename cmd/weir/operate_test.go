package main

import (
	"encoding/json"
	"fmt"
	"net"
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
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/sql"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/operate/doctor"
)

// look runs a command and checks its error; an empty wantErr means none.
func look(t *testing.T, wantErr string, args ...string) string {
	t.Helper()
	out, err := weir(t, args...)
	if got := fmt.Sprint(err); got != wantErr && (err != nil || wantErr != "") {
		t.Errorf("weir %v: got error %v, want %q", args, err, wantErr)
	}
	return out
}

// Operators inspect a process that has read good and bad events.
func TestOperate(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run", "--processor.commit_interval", "10ms"}, flags...)...)
	ready(t, p.address(t))
	writer := generate.NewKafkaWriter(&kafka.Transport{}, []string{flags[7]})
	defer writer.Close()
	now := time.Now().Add(-time.Minute)
	for i, amount := range []string{"1.5", "true", "3"} {
		event := fmt.Sprintf(`{"type": "transaction", "timestamp": %d, "user_id": "u1", "device_id": "d1", "amount": %s, "event_id": "%d", "note": "%*d"}`,
			now.UnixMilli(), amount, i, 1000*i, i)
		err := writer.WriteMessages(t.Context(), kafka.Message{Topic: "transactions", Key: []byte("u1"), Value: []byte(event), Time: now,
			Headers: []kafka.Header{{Key: "trace", Value: []byte("t1")}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) []string { return append(args, flags...) }

	testkit.Eventually(t, patience, "everything is applied", func() (bool, string) {
		out, err := weir(t, command("progress", "--max-lag", "0")...)
		return err == nil && strings.Count(out, "\ntransactions  ") == 2 && regexp.MustCompile(`(?m)^transactions +\d +0 +3 +3 +3 +3 +0 +0$`).MatchString(out) &&
			strings.HasSuffix(out, "\ntotal lag 0\n"), fmt.Sprint(out, err)
	})
	var progress struct {
		Partitions []struct{ End int64 }
		Lag        *int64
	}
	if out := look(t, "", command("progress", "--json")...); json.Unmarshal([]byte(out), &progress) != nil ||
		len(progress.Partitions) != 4 || progress.Lag == nil {
		t.Errorf("progress --json: %s", out)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: "transactions", Key: []byte("u1"), Value: []byte("{}"), Time: now}); err != nil {
		t.Fatal(err)
	}
	look(t, "a lag of 1 is beyond --max-lag 0", command("progress", "--max-lag", "0")...)
	look(t, "", command("progress", "--max-lag", "1")...)

	out := look(t, "", command("deadletters", "list", "--since", "1h")...)
	if !strings.HasSuffix(out, "\n1 dead letter: 1 wrong_type, 0 of them replayed\n") {
		t.Errorf("deadletters list:\n%s", out)
	}
	if out := look(t, "", command("deadletters", "list", "--json")...); !strings.Contains(out, `"reason": "wrong_type"`) {
		t.Errorf("deadletters list --json:\n%s", out)
	}
	tomorrow := time.Now().Add(24 * time.Hour).Format(time.RFC3339)
	for _, filter := range [][]string{{"--reason", "malformed"}, {"--stream", "login"}, {"--topic", "logins"}, {"--since", tomorrow}, {"--until", "1h"}} {
		if out := look(t, "", command(append([]string{"deadletters", "list"}, filter...)...)...); out != "0 dead letters, 0 of them replayed\n" {
			t.Errorf("deadletters list %v:\n%s", filter, out)
		}
		if out := look(t, "", command(append([]string{"deadletters", "replay", "--dry-run"}, filter...)...)...); out != "would replay 0 events\n" {
			t.Errorf("deadletters replay --dry-run %v:\n%s", filter, out)
		}
	}
	id := regexp.MustCompile(`transactions/\d/\d`).FindString(out)
	if out := look(t, "", command("deadletters", "show", id)...); !strings.Contains(out, "\nheader       trace: \"t1\"\n") ||
		!strings.Contains(out, `"amount": true`) {
		t.Errorf("deadletters show:\n%s", out)
	}
	if out := look(t, "", command("deadletters", "show", "--value", id)...); !strings.HasPrefix(out, `{"type"`) || !strings.HasSuffix(out, `"}`) {
		t.Errorf("deadletters show --value:\n%s", out)
	}
	if out := look(t, "", command("deadletters", "show", "--json", id)...); !strings.Contains(out, `"reason": "wrong_type"`) {
		t.Errorf("deadletters show --json:\n%s", out)
	}
	look(t, "topic weir.dead-letters has no dead letter at or of a/1/2", command("deadletters", "show", "a/1/2")...)
	for _, replay := range []struct{ flag, want string }{
		{"--dry-run", "would replay 1 event: 1 wrong_type\n"}, {"--stamp-now", "replayed 1 event: 1 wrong_type\n"},
	} {
		if out := look(t, "", command("deadletters", "replay", replay.flag)...); out != replay.want {
			t.Errorf("deadletters replay %s: got %q, want %q", replay.flag, out, replay.want)
		}
	}
	// The first record since then is the replayed one, the fifth of its partition.
	since := now.Add(time.Millisecond)
	found, err := (&kafka.Client{Addr: kafka.TCP(flags[7])}).ListOffsets(t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		"transactions": {kafka.TimeOffsetOf(0, since), kafka.TimeOffsetOf(1, since)},
	}})
	if err != nil || !slices.ContainsFunc(found.Topics["transactions"], func(p kafka.PartitionOffsets) bool { return !p.Offsets[4].IsZero() }) {
		t.Errorf("the record that was replayed with --stamp-now does not have the present time: %+v, error %v", found, err)
	}

	state := func() string { return look(t, "", command("state", "user_id=u1")...) }
	out = look(t, "", command("state", "user_id=u1", "--feature", "user_amount_1d")...)
	if !regexp.MustCompile(`(?s)^user_id=u1\n  key       \{weir:\d+[a-zA-Z]{3}\}\w+:u1\n.*: sum of amount in transaction\n.*\n    \S+Z  4\.5\n`).MatchString(out) || out == state() {
		t.Errorf("state:\n%s", out)
	}
	if out := look(t, "", command("state", "user_id=u1", "--json")...); !json.Valid([]byte(out)) {
		t.Errorf("state --json:\n%s", out)
	}
	asked := []string{"sql", "SELECT sum(sum) FROM user_amount_1d WHERE user_id = ? AND timestamp > ?", "u1", "2020-01-01"}
	if out := look(t, "", command(asked...)...); out != "sum(sum)\n4.5\n" {
		t.Errorf("sql:\n%s", out)
	}
	look(t, "at character 7: want a column, a function or *, got the end; a query is "+sql.Grammar, command("sql", "SELECT")...)
	look(t, "no state is kept by user with the keys given; it is kept by card_id; device_id; ip_c; payee_id; user_id; user_id,device_id",
		command("state", "user=u1")...)
	for _, args := range [][]string{{"state", "user_id=u1"}, {"state", "drop", "user_id=u1"}, asked} {
		look(t, `namespace "none" has not been created`, append(command(args...), "--namespace", "none")...)
	}
	before := state()
	if out := look(t, "", command("state", "drop", "user_id=u1", "--all", "--dry-run")...); !strings.Contains(out, "\n  to drop   all ") || state() != before {
		t.Errorf("state drop --dry-run:\n%s\nleaves\n%s", out, state())
	}
	look(t, "no state is kept by user_id with the keys given; it is kept by device_id",
		command("state", "drop", "user_id=u1", "--dry-run", "--feature", "device_tx_7d")...)
	if out := look(t, "", command("state", "drop", "user_id=u1", "--all")...); !strings.Contains(out, "\n  dropped   all ") || state() == before {
		t.Errorf("state drop:\n%s\nleaves\n%s", out, state())
	}
	// A refill reads what the settings let processors read.
	for _, refill := range []struct{ most, sum string }{{"1KiB", "1.5"}, {"1MiB", "4.5"}} {
		out := look(t, "", command("state", "drop", "user_id=u1", "--all", "--refill", "--json", "--kafka.max_record_bytes", refill.most)...)
		if got := look(t, "", command("state", "user_id=u1", "--feature", "user_amount_1d")...); !json.Valid([]byte(out)) || !strings.Contains(got, "Z  "+refill.sum+"\n") {
			t.Errorf("a refill with records of up to %s:\n%s\nleaves\n%s", refill.most, out, got)
		}
	}
	// What is done to one key is said even if another one cannot be dropped.
	client := redis.NewClient(&redis.Options{Addr: flags[9]})
	defer client.Close()
	key := regexp.MustCompile(`(?m)^  key +(\S+:u1)$`).FindStringSubmatch(state())
	if len(key) != 2 || client.Append(t.Context(), key[1], "\x01\x02\x03\x7f").Err() != nil {
		t.Fatalf("u1 has the keys %q, want one that can be changed", key)
	}
	for _, form := range []struct{ flag, want string }{{"--json=false", "\n  to drop   all but "}, {"--json", `"dropped":[{"entity":{"user_id":"u1"}`}} {
		out, err := weir(t, command("state", "drop", "user_id=u1", "device_id=d1", "--dry-run", form.flag)...)
		if err == nil || !strings.HasSuffix(err.Error(), ": drop what is damaged of the parent first") || !strings.Contains(out, form.want) {
			t.Errorf("state drop %s of a damaged user and its pair: error %v, output\n%s", form.flag, err, out)
		}
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	broker, server := kafkatest.Embedded(t, allTopics), redistest.New(t, redistest.Options{AOF: true})
	flags := []string{"--features", shipped, "--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", server.Addr()}
	out := look(t, "", append([]string{"doctor"}, flags...)...)
	for _, want := range []string{
		`OK    definitions              \d+ features of 2 streams`, `OK    redis                    Redis \d.*`, `OK    layout                   the namespace is new`,
		`OK    topic transactions       2 partitions`, `OK    topic weir\.dead-letters  1 partition`, `\d+ OK, \d+ WARN, 0 FAIL`,
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").MatchString(out) {
			t.Errorf("no line matches\n%s\nin\n%s", want, out)
		}
	}
	var found struct {
		Findings []struct{ Verdict string }
		Fail     int
	}
	out = look(t, "1 finding FAIL", append([]string{"doctor", "--json"}, append(flags, "--kafka.dead_letter_topic", "no-such")...)...)
	if err := json.Unmarshal([]byte(out), &found); err != nil || found.Fail != 1 || len(found.Findings) < 8 {
		t.Errorf("want one failed check in JSON: error %v, output %s", err, out)
	}
	for _, of := range []struct{ server, ok, fail string }{
		{"kafka", `redis +Redis \d.*`, `kafka +kafka\.tls\.ca: open /none\.pem: no such file or directory`},
		{"redis", `kafka +1 broker`, `redis +redis\.tls\.ca: open /none\.pem: no such file or directory`},
	} {
		out := look(t, "1 finding FAIL", append([]string{"doctor"}, append(flags, "--"+of.server+".tls.enabled", "--"+of.server+".tls.ca", "/none.pem")...)...)
		for _, want := range []string{"OK +" + of.ok, "FAIL +" + of.fail} {
			if !regexp.MustCompile("(?m)^" + want + "$").MatchString(out) {
				t.Errorf("no line matches\n%s\nin\n%s", want, out)
			}
		}
	}
	flags[1] = filepath.Join(t.TempDir(), "avro.yaml")
	const avro = "streams: {tx: {topic: transactions, timestamp: t, format: avro, fields: {user: string}}}\nfeatures: {n: 'COUNT(1d, tx, user)'}\n"
	if err := os.WriteFile(flags[1], []byte(avro), 0o600); err != nil {
		t.Fatal(err)
	}
	out = look(t, "1 finding FAIL", append([]string{"doctor"}, flags...)...)
	if !regexp.MustCompile(`(?m)^FAIL  schema registry +registry\.url is not set, and records of transactions name schemas of a registry$`).MatchString(out) {
		t.Errorf("the missing Schema Registry is not reported:\n%s", out)
	}
	flags[1] = "/none.yaml"
	out = look(t, "1 finding FAIL", append([]string{"doctor"}, flags...)...)
	if !strings.Contains(out, "FAIL  definitions  /none.yaml: cannot read definitions: no such file or directory\n                   -> correct it; weir validate checks only the definitions\n") {
		t.Errorf("the missing definitions are not reported:\n%s", out)
	}
}

// A Redis that does not answer takes no time from the checks of Kafka.
func TestDoctorWithoutAnswersOfRedis(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := config.Default()
	cfg.Features = []string{shipped}
	cfg.Kafka.Brokers, cfg.Redis.Addresses = kafkatest.Embedded(t, allTopics).ListenAddrs(), []string{silent.Addr().String()}
	cfg.Redis.ReadTimeout = time.Minute
	within := time.Second
	testkit.Eventually(t, patience, "Redis fails, and Kafka does not", func() (bool, string) {
		within *= 2 // the machine may be busy
		findings := examine(t.Context(), cfg, time.Hour, within)
		verdicts := map[string]doctor.Verdict{}
		for _, f := range findings {
			verdicts[f.Subject] = f.Verdict
		}
		return verdicts["redis"] == doctor.Fail && verdicts["kafka"] == doctor.OK, fmt.Sprintf("%+v", findings)
	})
}
