package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// aclRule is a line of docs/operations.md that makes a user of Redis.
var aclRule = regexp.MustCompile(`(?m)^ACL SETUSER (weir-\w+) on >PASSWORD (.*)$`)

// documentedUsers are the rules of Redis' users, by name, as docs/operations.md
// has them: the only list there is.
func documentedUsers(t *testing.T) map[string][]string {
	t.Helper()
	users := map[string][]string{}
	for _, line := range aclRule.FindAllStringSubmatch(read(t, "../../docs/operations.md"), -1) {
		users[line[1]] = strings.Fields(strings.ReplaceAll(line[2], "weir:", aclNamespace+":"))
	}
	return users
}

const aclNamespace = "least"

const aclDefinitions = `
streams:
  payment:
    topic: payments
    timestamp: at
    id: id
    remember_ids: 1h
    max_future: 1h
    fields: {id: string, user: string, device: string, cents: int}
    enrich: {service: risk, topic: enriched}
features:
  spent: SUM(1d, payment, cents, user)
  devices: SET(7d, payment, user, device)
  last: LAST_K(lifetime, payment, cents, user, k=3)
  ever: COUNT(lifetime, payment, user)
  seen: SEEN(7d, payment, user, device)
  through: COUNT(7d, payment, device, through=SET(7d, payment, user, device))
  by_device: COUNT(7d, payment, device)
  pair: COUNT(7d, payment, user, device)
services:
  risk: [spent, devices, ever, through]
`

// A processor and an API whose users of Redis may do no more than what
// docs/operations.md says do everything that they do: nothing is denied, and
// nothing that is allowed is superfluous.
func TestLeastPrivileges(t *testing.T) {
	server := redistest.New(t, redistest.Options{AOF: true})
	users, admin := documentedUsers(t), server.Client(t)
	if len(users) != 3 {
		t.Fatalf("docs/operations.md has the users %v", users)
	}
	for name, rules := range users {
		args := []any{"ACL", "SETUSER", name, "on", ">secret"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := admin.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	broker := kafkatest.Embedded(t, map[string]int{"payments": 2, "enriched": 1, "weir.dead-letters": 1})
	dir := t.TempDir()
	definitions, password := writeFile(t, dir, "features.yaml", aclDefinitions), writeFile(t, t.TempDir(), "password", "secret")
	settings := func(user string) []string {
		return []string{"--namespace", aclNamespace, "--features", definitions, "--shards", "4", "--api.listen", "127.0.0.1:0",
			"--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", server.Addr(), "--redis.username", "weir-" + user, "--redis.password_file", password}
	}
	begin := func(role string) *process {
		return start(t, append([]string{"run", "--roles", role}, settings(role)...)...)
	}
	processor, api := begin("processor"), begin("api")
	base := api.address(t)
	ready(t, processor.address(t))
	ready(t, base)
	writer := &kafka.Writer{Addr: kafka.TCP(broker.ListenAddrs()[0]), Topic: "payments", Balancer: kafka.BalancerFunc(func(kafka.Message, ...int) int { return 0 }), BatchTimeout: time.Millisecond}
	t.Cleanup(func() { _ = writer.Close() })
	const first = 1767225600000
	write := func(user string, from, to int) {
		var messages []kafka.Message
		for i := from; i < to; i++ {
			at := first + int64(i)*1000
			messages = append(messages, kafka.Message{
				Key: []byte(user), Time: time.UnixMilli(at),
				Value: fmt.Appendf(nil, `{"at":%d,"id":"%s-%d","user":%q,"device":"d%d","cents":%d}`, at, user, i, user, i%7, i),
			})
		}
		if err := writer.WriteMessages(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
	}
	write("u1", 0, 300)
	if err := writer.WriteMessages(t.Context(), kafka.Message{Time: time.UnixMilli(first), Value: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	const question = `{"features":["spent","devices","last","ever","seen","through","by_device","pair"],"members":{"seen":["d1"]},"entities":[{"user":"u1","device":"d1"}],"at":1767225899000%s}`
	ask := func(more string) string {
		answer, err := http.Post(base+"/v1/query", "application/json", strings.NewReader(fmt.Sprintf(question, more)))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	testkit.Eventually(t, patience, "all is counted", func() (bool, string) {
		body := ask("")
		return strings.Contains(body, `"ever":{"value":300,`), body
	})
	for more, want := range map[string]string{
		`,"pending":{"stream":"payment","event":{"at":1767225899000,"id":"u1-1","user":"u1","device":"d1","cents":1}}`: `"deduplicated":true`,
		`,"wait_for":{"topic":"payments","partition":0,"offset":0}`:                                                    `"waited":{"applied":true}`,
		`,"wait_for":{"topic":"payments","partition":7,"offset":0,"timeout_ms":1}`:                                     `"waited":{"applied":false}`,
	} {
		if body := ask(more); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", more, body, want)
		}
	}
	// Other definitions: partitions are claimed.
	writeFile(t, dir, "features.yaml", strings.Replace(aclDefinitions, "  ever:", "  more: MAX(1d, payment, cents, user)\n  ever:", 1))
	processor.shows(t, "definitions taken")
	// The partitions are claimed, and appends to one user's state compact it.
	events := 0
	testkit.Eventually(t, patience, "everything that is allowed is used", func() (bool, string) {
		write("u2", events, events+5)
		events += 5
		unused := unused(t, admin, users)
		return len(unused) == 0, fmt.Sprintf("docs/operations.md allows what nobody needs: %q", unused)
	})
	for _, command := range []string{"doctor", "run --check", "progress", "state user=u1", "deadletters list"} {
		out, err := weir(t, append(strings.Fields(command), settings("operator")...)...)
		if err != nil && command != "doctor" { // which finds what to say of a Redis without a replica
			t.Errorf("weir %s: %v\n%s", command, err, out)
		}
	}
	for _, p := range []*process{processor, api} {
		p.stop()
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
	checkNothingDenied(t, admin)
}

// checkNothingDenied fails for what Redis refused.
func checkNothingDenied(t *testing.T, admin *redis.Client) {
	t.Helper()
	denied, err := admin.ACLLog(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range denied {
		t.Errorf("%s may not %s %s (%s): add it to the users in docs/operations.md", entry.Username, entry.Reason, entry.Object, entry.Context)
	}
}

// seldom are the commands that are needed where the test does not come: a compaction
// deletes a key of which nothing is left.
var seldom = []string{"del"}

// unused are the commands that are allowed and were not used yet, by user.
func unused(t *testing.T, admin *redis.Client, users map[string][]string) (unused []string) {
	t.Helper()
	stats, err := admin.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, rules := range users {
		for _, rule := range rules {
			command, ok := strings.CutPrefix(rule, "+")
			if ok && name != "weir-operator" && !slices.Contains(seldom, command) && !strings.Contains(stats, "cmdstat_"+command+":") {
				unused = append(unused, name+" "+rule)
			}
		}
	}
	return unused
}
