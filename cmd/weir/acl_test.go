package main

import (
	"errors"
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

// aclRule matches a line of docs/security.md that creates a Redis user.
var aclRule = regexp.MustCompile(`(?m)^ACL SETUSER (weir-\w+) on >PASSWORD (.*)$`)

// documentedUsers returns the rules of the Redis users by name, from docs/security.md: the only
// list there is.
func documentedUsers(t *testing.T) map[string][]string {
	t.Helper()
	users := map[string][]string{}
	for _, line := range aclRule.FindAllStringSubmatch(read(t, "../../docs/security.md"), -1) {
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

// A processor and an API work fully with Redis users limited to the rights in docs/security.md:
// nothing is denied, and no right is superfluous.
func TestLeastPrivileges(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{AOF: true})
	users, admin := documentedUsers(t), server.Client(t)
	if len(users) != 5 {
		t.Fatalf("docs/security.md defines the users %v, want 5", users)
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
		`,"wait_for":{"topic":"payments","partition":7,"offset":0,"timeout_ms":1}`:                                     `"waited":{"applied":false,"nothing_applied":true}`,
	} {
		if body := ask(more); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", more, body, want)
		}
	}
	testkit.Eventually(t, patience, "the busiest entities", func() (bool, string) {
		_, body := statusOf(t, base+"/v1/busiest")
		return strings.Contains(body, `{"key":"user","entities":[{"entity":"u1","events":`), body
	})
	for _, p := range []*process{processor, api} {
		if status, body := statusOf(t, p.address(t)+"/v1/greatest-keys"); status != 200 || !strings.Contains(body, `"entity":{"user":"u1"}`) || strings.Contains(body, "incomplete") {
			t.Errorf("/v1/greatest-keys: %d %s, want the key of u1 without \"incomplete\"", status, body)
		}
	}
	// The definitions change, so that partitions are claimed.
	writeFile(t, dir, "features.yaml", strings.Replace(aclDefinitions, "  ever:", "  more: MAX(1d, payment, cents, user)\n  ever:", 1))
	processor.shows(t, "definitions loaded")
	// Partitions are claimed, and appends to one user's state compact it. The sweeper of the new definitions begins when the
	// lease of the one before is over, after 40 s at most.
	events := 0
	testkit.Eventually(t, 2*patience, "everything that is allowed is used", func() (bool, string) {
		write("u2", events, events+5)
		events += 5
		unused := unused(t, admin, map[string][]string{"weir-processor": users["weir-processor"], "weir-api": users["weir-api"]})
		return len(unused) == 0, fmt.Sprintf("docs/security.md allows what nobody needs: %q", unused)
	})
	diff := "diff " + definitions + " " + definitions + " --memory"
	for _, command := range []string{"doctor", "run --check", "progress", "state user=u1", "deadletters list", "deadletters replay", diff} {
		out, err := weir(t, append(strings.Fields(command), settings("operator")...)...)
		if err != nil && command != "doctor" { // doctor warns of a Redis without a replica
			t.Errorf("weir %s: %v\n%s", command, err, out)
		}
	}
	key := admin.Keys(t.Context(), "{"+aclNamespace+":*:u1").Val()
	if len(key) != 1 || admin.Append(t.Context(), key[0], "\x01\x02\x03\x7f").Err() != nil {
		t.Fatalf("u1 has the keys %q, want one that can be changed", key)
	}
	for _, more := range []string{" --dry-run", " --refill", ""} {
		if out, err := weir(t, append(strings.Fields("state drop user=u1"+more), settings("mender")...)...); err != nil {
			t.Errorf("weir state drop%s: %v\n%s", more, err, out)
		}
	}
	if body := ask(""); !strings.Contains(body, `"ever":{"value":300,`) || strings.Contains(body, "INCOMPLETE") {
		t.Errorf("after the refill: got %s, want the value 300, complete", body)
	}
	for _, p := range []*process{processor, api} {
		p.stop()
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
	for _, command := range []string{"progress set payments --to start --again --yes", "backfill"} {
		out, err := weir(t, append(strings.Fields(command), settings("processor")...)...)
		if err != nil && !errors.Is(err, errNothingToFill) {
			t.Errorf("weir %s: %v\n%s", command, err, out)
		}
	}
	for _, flags := range []string{"--to 8 --yes", "--delete-old", "--to 16"} {
		if out, err := weir(t, append(strings.Fields("reshard "+flags), settings("resharder")...)...); err != nil {
			t.Errorf("weir reshard %s: %v\n%s", flags, err, out)
		}
	}
	if err := admin.HSet(t.Context(), aclNamespace+":layout", "resharding", 16).Err(); err != nil {
		t.Fatal(err)
	}
	if out, err := weir(t, append([]string{"reshard", "--cancel"}, settings("resharder")...)...); err != nil {
		t.Errorf("weir reshard --cancel: %v\n%s", err, out)
	}
	if unused := unused(t, admin, users); len(unused) > 0 {
		t.Errorf("docs/security.md allows what nobody needs: %q", unused)
	}
	checkNothingDenied(t, admin)
}

// checkNothingDenied fails the test if Redis refused anything.
func checkNothingDenied(t *testing.T, admin *redis.Client) {
	t.Helper()
	denied, err := admin.ACLLog(t.Context(), 100).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range denied {
		if entry.Object == "config|get" || entry.Object == "config" { // `weir doctor` asks for more than its user may see
			continue
		}
		t.Errorf("%s may not %s %s (%s): add it to the users in docs/security.md", entry.Username, entry.Reason, entry.Object, entry.Context)
	}
}

// seldom lists commands that Weir needs but the test does not reach: a compaction deletes an empty key, resharding
// records which keys change, reads them and takes some over by their names, and a server that did not answer is asked
// whether it does again.
var seldom = []string{"del", "sadd", "ping", "rename", "sscan"}

// unused returns, by user, the allowed commands that have not been used.
func unused(t *testing.T, admin *redis.Client, users map[string][]string) (unused []string) {
	t.Helper()
	stats, err := admin.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, rules := range users {
		for _, rule := range rules {
			command, ok := strings.CutPrefix(rule, "+")
			if ok && !slices.Contains(seldom, command) && !strings.Contains(stats, "cmdstat_"+command+":") {
				unused = append(unused, name+" "+rule)
			}
		}
	}
	return unused
}

// attacks are what no user of Weir may do: learn passwords, hang or end others, read or change what is not Weir's, or
// change the server. OTHER is a key of another tenant, OURS one of Weir's.
var attacks = []string{
	"CONFIG GET requirepass", "CONFIG SET requirepass stolen", "CONFIG REWRITE", "CONFIG RESETSTAT",
	"CLIENT PAUSE 1", "CLIENT KILL TYPE normal", "CLIENT LIST", "CLIENT NO-EVICT on", "CLIENT UNBLOCK 1", "CLIENT REPLY OFF",
	"ACL LIST", "ACL WHOAMI", "ACL SETUSER thief on nopass ~* +@all", "ACL LOG", "MONITOR", "SHUTDOWN NOSAVE", "SLOWLOG GET",
	"FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "MOVE OURS 1", "SELECT 1", "SAVE", "BGSAVE", "REPLICAOF NO ONE", "FAILOVER", "CLUSTER RESET", "SYNC",
	"MODULE LIST", "FUNCTION LIST", "SCRIPT FLUSH", "SCRIPT KILL", "LATENCY RESET", "KEYS *", "RANDOMKEY", "SUBSCRIBE all", "PUBLISH all x",
	"GET OTHER", "SET OTHER x", "DEL OTHER", "RENAME OTHER OURS", "COPY OTHER OURS", "DUMP OURS", "RESTORE OTHER 0 x", "MIGRATE 127.0.0.1 1 OURS 0 1",
	"SORT OURS GET OTHER", "OBJECT FREQ OURS", "MEMORY DOCTOR", "WAIT 1 1", "MULTI",
	"EVAL redis.call('GET','OTHER') 0", "EVAL redis.call('CONFIG','GET','requirepass') 0", "EVAL redis.call('KEYS','*') 0",
}

// writes are what only users that change the state may do.
var writes = []string{"SET OURS x", "DEL OURS", "UNLINK OURS", "HSET OURS a b", "EXPIRE OURS 1", "APPEND OURS x", "EVAL redis.call('SET','OURS','x') 0"}

// refused matches what Redis says of what a user may not do, also in scripts, in all versions.
var refused = regexp.MustCompile(`^NOPERM|permission|can't access|can't run|not allowed from script`)

// A process that an attacker has taken over can do with its user of Redis what Weir does, and no more.
func TestUsersOfRedisCannotEscalate(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	admin, other, ours := server.Client(t), "payroll:1", "{"+aclNamespace+":1}:e:u1"
	for _, key := range []string{other, ours} {
		if err := admin.Set(t.Context(), key, "1", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for name, rules := range documentedUsers(t) {
		args := []any{"ACL", "SETUSER", name, "on", ">secret"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: name, Password: "secret", DisableIdentity: true})
		t.Cleanup(func() { _ = client.Close() })
		forbidden := attacks
		if name == "weir-api" || name == "weir-operator" {
			forbidden = slices.Concat(attacks, writes)
		}
		for _, attack := range forbidden {
			words := strings.SplitN(attack, " ", 2)
			if words[0] == "EVAL" {
				script, keys, _ := strings.Cut(words[1], " ")
				words = []string{"EVAL", script, keys}
			} else {
				words = strings.Fields(attack)
			}
			var command []any
			for _, word := range words {
				command = append(command, strings.NewReplacer("OTHER", other, "OURS", ours).Replace(word))
			}
			if reply, err := client.Do(t.Context(), command...).Result(); err == nil || !refused.MatchString(err.Error()) {
				t.Errorf("%s: %s: got %v, %v; want it forbidden", name, attack, reply, err)
			}
		}
	}
}

// These match what docs/security.md says of replicas and of clusters, and a right in it.
var (
	replicaRule = regexp.MustCompile("(?m)^- `redis.read_from: replica`: the API needs (.*)\\.$")
	clusterRule = regexp.MustCompile("(?m)^- A cluster: all need (.*), the processor also (.*),\n  `weir-operator`, .* also (.*)\\. ")
	addedRight  = regexp.MustCompile("`(\\+[^`]+)`")
)

// clusterRights returns the rights that users need in a cluster whose replicas answer questions, beside those of
// documentedUsers, from docs/security.md.
func clusterRights(t *testing.T) map[string][]string {
	t.Helper()
	page := read(t, "../../docs/security.md")
	replica, cluster := replicaRule.FindStringSubmatch(page), clusterRule.FindStringSubmatch(page)
	if replica == nil || cluster == nil {
		t.Fatalf("docs/security.md does not say what is needed for replicas (%q) and for a cluster (%q)", replica, cluster)
	}
	of := func(text string) (rights []string) {
		for _, right := range addedRight.FindAllStringSubmatch(text, -1) {
			rights = append(rights, right[1])
		}
		return rights
	}
	return map[string][]string{
		"weir-processor": of(cluster[1] + cluster[2]), "weir-api": of(cluster[1] + replica[1]), "weir-operator": of(cluster[1] + cluster[3]),
	}
}

// In a cluster whose replicas answer questions, the rights that docs/security.md adds to those users suffice.
func TestLeastPrivilegesInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	for i := range cluster.Nodes {
		cluster.AddReplica(t, i)
	}
	users, more := documentedUsers(t), clusterRights(t)
	var admins []*redis.Client
	for _, server := range slices.Concat(cluster.Nodes, cluster.Replicas) {
		admin := server.Client(t)
		admins = append(admins, admin)
		for name, added := range more {
			args := []any{"ACL", "SETUSER", name, "on", ">secret"}
			for _, rule := range slices.Concat(users[name], added) {
				args = append(args, rule)
			}
			if err := admin.Do(t.Context(), args...).Err(); err != nil {
				t.Fatalf("%s at %s: %v", name, server.Addr(), err)
			}
		}
	}
	broker := kafkatest.Embedded(t, map[string]int{"payments": 2, "enriched": 1, "weir.dead-letters": 1})
	definitions, password := writeFile(t, t.TempDir(), "features.yaml", aclDefinitions), writeFile(t, t.TempDir(), "password", "secret")
	settings := func(user string) []string {
		return []string{"--namespace", aclNamespace, "--features", definitions, "--api.listen", "127.0.0.1:0", "--kafka.brokers", broker.ListenAddrs()[0],
			"--redis.mode", "cluster", "--redis.read_from", "replica", "--redis.addresses", strings.Join(cluster.Addrs(), ","),
			"--redis.username", "weir-" + user, "--redis.password_file", password}
	}
	processor := start(t, append([]string{"run", "--roles", "processor"}, settings("processor")...)...)
	api := start(t, append([]string{"run", "--roles", "api"}, settings("api")...)...)
	ready(t, processor.address(t))
	ready(t, api.address(t))
	write(t, broker.ListenAddrs()[0], "payments", `{"at":1767225600000,"id":"1","user":"u1","device":"d1","cents":5}`)
	testkit.Eventually(t, patience, "a replica answers", func() (bool, string) {
		_, body := statusOf(t, api.address(t)+"/v1/features/ever?user=u1")
		return strings.Contains(body, `"value":1,`) && strings.Contains(body, `"read_from":"replica"`), body
	})
	for _, command := range []string{"doctor", "run --check", "progress"} {
		if out, err := weir(t, append(strings.Fields(command), settings("operator")...)...); err != nil {
			t.Errorf("weir %s: %v\n%s", command, err, out)
		}
	}
	for _, admin := range admins {
		checkNothingDenied(t, admin)
	}
}
