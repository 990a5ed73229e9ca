package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// kafkaUser matches a row of the table of Kafka users in docs/security.md.
var kafkaUser = regexp.MustCompile("(?m)^\\| `(weir-\\w+)` \\|(.*)\\|$")

// kafkaRights returns the rights of the Kafka users in docs/security.md: the only list there is.
func kafkaRights(t *testing.T) (rights []kafkatest.Right) {
	t.Helper()
	columns := []kafkatest.Right{
		{Type: "Topic", Name: "payments"}, {Type: "Topic", Name: "weir.dead-letters"}, {Type: "Topic", Name: "enriched"},
		{Type: "Group", Name: "weir"}, {Type: "TransactionalId", Name: "weir-replay.weir.dead-letters"},
	}
	for _, row := range kafkaUser.FindAllStringSubmatch(read(t, "../../docs/security.md"), -1) {
		cells := strings.Split(row[2], "|")
		if len(cells) != len(columns) {
			t.Fatalf("%s has %d columns, want %d", row[1], len(cells), len(columns))
		}
		for i, cell := range cells {
			for operation := range strings.SplitSeq(strings.NewReplacer("`", "", " ", "").Replace(cell), ",") {
				if right := columns[i]; operation != "" {
					right.User, right.Operation = row[1], operation
					rights = append(rights, right)
				}
			}
		}
	}
	return rights
}

// Processor and operator work fully with Kafka users limited to the rights in docs/security.md: nothing is denied, and
// no right is superfluous. An API needs no Kafka.
func TestLeastPrivilegesInKafka(t *testing.T) {
	t.Parallel()
	authority := auth.NewAuthority(t)
	broker := kafkatest.New(t, kafkatest.Options{TLS: authority, ACLs: true})
	for topic, partitions := range map[string]int{"payments": 2, "enriched": 1, "weir.dead-letters": 1} {
		kafkatest.MakeTopic(t, broker, topic, partitions)
	}
	rights := kafkaRights(t)
	users := map[string]bool{}
	for _, r := range rights {
		users[r.User] = true
	}
	if len(users) != 3 {
		t.Fatalf("docs/security.md defines the Kafka users %v, want 3", slices.Sorted(maps.Keys(users)))
	}
	broker.Allow(t, rights...)

	redis := redistest.New(t, redistest.Options{AOF: true})
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", aclDefinitions)
	common := []string{"--features", definitions, "--shards", "4", "--redis.addresses", redis.Addr()}
	as := func(user string, args ...string) []string {
		cert, key := authority.Issue(user)
		return slices.Concat(args, common, []string{"--kafka.brokers", broker.MutualAddr(), "--kafka.tls.enabled=true",
			"--kafka.tls.ca", authority.CA, "--kafka.tls.cert", cert, "--kafka.tls.key", key})
	}
	processor := start(t, as("weir-processor", "run", "--roles", "processor", "--api.listen", "127.0.0.1:0")...)
	api := start(t, slices.Concat([]string{"run", "--roles", "api", "--api.listen", "127.0.0.1:0", "--kafka.brokers", "127.0.0.1:1"}, common)...)
	ready(t, processor.address(t))
	ready(t, api.address(t))

	writer := &kafka.Writer{Addr: kafka.TCP(broker.Addrs()...), Topic: "payments"}
	t.Cleanup(func() { _ = writer.Close() })
	if err := writer.WriteMessages(t.Context(), kafka.Message{Key: []byte("u1"), Value: []byte(`{"at":1767225600000,"id":"1","user":"u1","device":"d1","cents":5}`)},
		kafka.Message{Key: []byte("u1"), Value: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	holds := func(what, want string, out func() (string, error)) {
		t.Helper()
		testkit.Eventually(t, patience, what, func() (bool, string) {
			text, err := out()
			return err == nil && strings.Contains(text, want), fmt.Sprint(text, err)
		})
	}
	command := func(user, line string) func() (string, error) {
		return func() (string, error) { return weir(t, as(user, strings.Fields(line)...)...) }
	}
	holds("the event is counted", "ever     1      PRESENT", func() (string, error) {
		return weir(t, "query", "--address", api.address(t), "ever", "user=u1")
	})
	holds("the page shows the dead letter", `"reason":"malformed"`, func() (string, error) {
		_, body := statusOf(t, processor.address(t)+"/v1/dead-letters")
		return body, nil
	})
	holds("the lag", "total lag 0", command("weir-operator", "progress"))
	holds("the doctor", "OK    topic payments           cleanup.policy", command("weir-operator", "doctor"))
	const mayNot = "this user may not write to it: a processor with this user stops a partition at the first record for it"
	for _, topic := range []string{"topic enriched         ", "topic weir.dead-letters"} {
		holds("what the doctor says without the right to write", "WARN  "+topic+"  "+mayNot, command("weir-operator", "doctor"))
	}
	for _, topic := range []string{"enriched", "weir.dead-letters"} {
		holds("what a check says without the right to write", fmt.Sprintf("FAIL  %-28s the user may not write to it: allow Write on it", "topic "+topic),
			func() (string, error) { out, _ := command("weir-operator", "run --check")(); return out, nil })
	}
	holds("dead letters", "malformed", command("weir-operator", "deadletters list"))
	holds("a refill", "", command("weir-operator", "state drop user=u1 --refill"))
	holds("a preview", "ever", command("weir-operator", "preview ever"))
	holds("a check", "group weir                   may be joined", command("weir-processor", "run --check"))
	holds("what a check says without the right", "group weir                   the user may not use it: allow Describe and Read on the consumer group",
		func() (string, error) { out, _ := command("weir-operator", "run --check")(); return out, nil })
	holds("a replay", "replayed 1 event", command("weir-replayer", "deadletters replay"))
	writeFile(t, dir, "features.yaml", strings.Replace(aclDefinitions, "  ever:", "  more: MAX(1d, payment, cents, user)\n  ever:", 1))
	processor.shows(t, "definitions loaded")
	holds("a backfill", "done", command("weir-processor", "backfill"))

	used, lacked := broker.Decisions(t)
	for right, request := range lacked {
		// The check without the right, above.
		if right != (kafkatest.Right{User: "weir-operator", Operation: "Read", Type: "Group", Name: "weir"}) {
			t.Errorf("%s lacks %s on %s %s (%s): add it to the users in docs/security.md", right.User, right.Operation, right.Type, right.Name, request)
		}
	}
	for _, right := range rights {
		if used[right] == "" {
			t.Errorf("docs/security.md allows what nobody needs: %+v", right)
		}
	}
}
