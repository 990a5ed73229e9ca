package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// servers starts the servers of a process, and returns the flags that name them.
func servers(t *testing.T, topics map[string]int) (flags []string, redisAddress string) {
	t.Helper()
	broker, redis := kafkatest.Embedded(t, topics), redistest.Embedded(t)
	return []string{
		"--features", shipped, "--shards", "4", "--api.listen", "127.0.0.1:0",
		"--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", redis.Addr(),
	}, redis.Addr()
}

// allTopics are those of the shipped definitions, with their partitions.
var allTopics = map[string]int{"logins": 2, "transactions": 2, "weir.dead-letters": 1, "merchants": 1, "weir.lists": 1}

var listening = regexp.MustCompile(`listen=(\S+)`)

// address waits until the process listens, and returns its address.
func (p *process) address(t *testing.T) string {
	t.Helper()
	p.shows(t, "listen=")
	return "http://" + listening.FindStringSubmatch(p.err.String())[1]
}

func statusOf(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func ready(t *testing.T, base string) {
	t.Helper()
	testkit.Eventually(t, patience, "being ready", func() (bool, string) {
		code, body := statusOf(t, base+"/readyz")
		return code == http.StatusOK, body
	})
}

func TestRunAppliesAndAnswers(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	both := start(t, append([]string{"run"}, flags...)...)
	processor := start(t, append([]string{"run", "--roles", "processor"}, flags...)...)
	base := both.address(t)
	ready(t, base)

	brokers := flags[7]
	if _, err := weir(t, "generate", "--brokers", brokers, "--events", "500", "--live"); err != nil {
		t.Fatal(err)
	}
	// d000001 is one of the few devices that all users share.
	testkit.Eventually(t, patience, "an answer", func() (bool, string) {
		out, err := weir(t, "query", "--address", base, "device_tx_7d", "device_id=d000001")
		return strings.Contains(out, "PRESENT"), fmt.Sprint(out, err)
	})

	ops := processor.address(t)
	for path, want := range map[string]int{"/healthz": 200, "/metrics": 200, "/v1/status": 200, "/v1/dead-letters": 200, "/v1/greatest-keys": 200, "/": 200, "/page/page.js": 200, "/v1/features": 404} {
		if code, body := statusOf(t, ops+path); code != want {
			t.Errorf("a processor answers GET %s with %d, want %d: %s", path, code, want, body)
		}
	}
	if _, metrics := statusOf(t, base+"/metrics"); !strings.Contains(metrics, "weir_assigned_partitions") ||
		!strings.Contains(metrics, "weir_questions_in_flight") || !strings.Contains(metrics, "go_goroutines") {
		t.Error("metrics of the processor, the API or Go are missing")
	}
	for _, p := range []*process{processor, both} {
		p.stop()
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
		if !strings.Contains(p.err.String(), "weir has stopped") {
			t.Errorf("the log does not say that weir has stopped:\n%s", p.err.String())
		}
	}
}

func TestRunWithoutItsTopics(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, map[string]int{"logins": 1})
	p := start(t, append([]string{"run", "--log.format", "json"}, flags...)...)
	err := p.wait(t)
	if want := "Kafka: no topic transactions, weir.dead-letters: create it, or set kafka.create_topics; with ACLs, allow Describe on it"; fmt.Sprint(err) != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}
	if want := `"msg":"weir is running"`; !strings.Contains(p.err.String(), want) {
		t.Errorf("the log does not have the format of log.format: no %s in\n%s", want, p.err.String())
	}
}

func TestRunCreatesItsTopics(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, map[string]int{"logins": 1})
	flags = append(flags, "--kafka.create_topics", "--kafka.topic_partitions", "3", "--kafka.topic_replication", "1")
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	out, err := weir(t, append([]string{"run", "--check"}, flags...)...)
	if !strings.Contains(out, "transactions           3 partitions") {
		t.Errorf("the topics were not created: error %v, output\n%s", err, out)
	}
}

func TestRunOnANamespaceOfAnotherLayout(t *testing.T) {
	t.Parallel()
	flags, address := servers(t, allTopics)
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	first := start(t, append([]string{"run"}, flags...)...)
	ready(t, first.address(t))
	first.stop()
	if err := first.wait(t); err != nil {
		t.Fatal(err)
	}
	// The number of shards is the namespace's, and not the setting's.
	second := start(t, append([]string{"run"}, append(flags, "--shards", "8")...)...)
	ready(t, second.address(t))
	if shards := client.HGet(t.Context(), "weir:layout", "shards").Val(); shards != "4" {
		t.Errorf("the namespace has %s shards, want 4", shards)
	}
	second.stop()
	if err := second.wait(t); err != nil {
		t.Error(err)
	}
	if err := client.HSet(t.Context(), "weir:layout", "format", "0").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := weir(t, append([]string{"run"}, flags...)...)
	want := `Redis: namespace "weir" was written in layout 0, and this version of Weir reads and writes layout 15 only: ` +
		`use a version that knows layout 0, or another namespace, into which the log is read from its start`
	if fmt.Sprint(err) != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}
}

func TestRunWaitsForRedisAndKafka(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	// Nothing listens on port 1.
	p := start(t, append([]string{"run"}, append(flags, "--redis.addresses", "127.0.0.1:1")...)...)
	p.shows(t, "waiting for Redis")
	base := p.address(t)
	if code, _ := statusOf(t, base+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: got %d, want 200", code)
	}
	if code, body := statusOf(t, base+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz: got %d %s, want 503", code, body)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}

	p = start(t, append([]string{"run"}, append(flags, "--kafka.brokers", "127.0.0.1:1")...)...)
	base = p.address(t)
	testkit.Eventually(t, patience, "readiness says why it waits", func() (bool, string) {
		_, body := statusOf(t, base+"/readyz")
		return strings.Contains(body, "waiting for Kafka: nothing listens at 127.0.0.1:1"), body
	})
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
}

func TestCheckWithoutFindings(t *testing.T) {
	t.Parallel()
	broker, server := kafkatest.Embedded(t, allTopics), redistest.New(t, redistest.Options{})
	out, err := weir(t, "run", "--check", "--features", shipped,
		"--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", server.Addr())
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`ok    settings                     namespace weir, 4 shards`,
		`ok    features                     \d+ features of 2 streams in \d+ state series, 4 services`,
		`ok    kafka                        1 broker`,
		`ok    group weir                   may be joined`,
		`ok    topic logins                 2 partitions`,
		`ok    topic merchants              1 partition`,
		`ok    topic transactions           2 partitions`,
		`ok    topic weir.dead-letters      1 partition`,
		`ok    redis                        version \d+\.\d+\S*`,
		`ok    layout                       the namespace is new`,
	} {
		if !regexp.MustCompile("(?m)^" + want + "$").MatchString(out) {
			t.Errorf("no line matches\n%s\nin\n%s", want, out)
		}
	}
}

func TestCheckWarnsOfRedisWithoutPersistence(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	client := server.Client(t)
	for setting, value := range map[string]string{"maxmemory-policy": "allkeys-lru", "appendonly": "no"} {
		if err := client.ConfigSet(t.Context(), setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	out, err := weir(t, "run", "--check", "--roles", "api", "--features", shipped+"/transactions.yaml", "--redis.addresses", server.Addr())
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"warn  redis                        maxmemory-policy is allkeys-lru: answers are INCOMPLETE once keys are evicted; set noeviction\n",
		"warn  redis                        appendonly is off: after a crash the state is that of the last snapshot, and events since then are read again\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the line\n%s\nis not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "kafka") {
		t.Errorf("the check of an API without tables in topics names Kafka:\n%s", out)
	}
}

// A process with any role refuses a Redis that evicts keys, unless that is allowed; so does its check.
func TestRunOnARedisThatEvicts(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{Config: map[string]string{"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}})
	kafka := kafkatest.Embedded(t, allTopics).ListenAddrs()[0]
	flags := []string{"--features", shipped, "--redis.addresses", server.Addr(), "--kafka.brokers", kafka, "--api.listen", "127.0.0.1:0"}
	const reason = "set noeviction, or redis.allow_eviction: true, with which answers are INCOMPLETE once keys are evicted"
	for _, role := range []string{"processor", "api"} {
		run := append([]string{"run", "--roles", role}, flags...)
		_, err := weir(t, run...)
		if want := "Redis: maxmemory-policy of " + server.Addr() + " is allkeys-lru: " + reason; fmt.Sprint(err) != want {
			t.Errorf("%s: got %v, want %s", role, err, want)
		}
		out, err := weir(t, append(run, "--check")...)
		if want := "FAIL  redis                        maxmemory-policy is allkeys-lru: " + reason + "\n"; err == nil || !strings.Contains(out, want) {
			t.Errorf("check of %s: got %v, want\n%s in\n%s", role, err, want, out)
		}
		allowed := append(run, "--redis.allow_eviction=true")
		if out, err := weir(t, append(allowed, "--check")...); err != nil {
			t.Errorf("check of %s where eviction is allowed: %v\n%s", role, err, out)
		}
		p := start(t, allowed...)
		ready(t, p.address(t))
		p.stop()
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
	}
}

// Events cannot be written to a replica, but questions can be asked of it.
func TestCheckOfAReplica(t *testing.T) {
	t.Parallel()
	broker, replica := kafkatest.Embedded(t, allTopics), redistest.NewReplica(t, redistest.New(t, redistest.Options{}).Addr())
	for role, want := range map[string]bool{"processor": true, "api": false} {
		out, err := weir(t, "run", "--check", "--roles", role, "--features", shipped,
			"--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", replica.Addr())
		if strings.Contains(out, "FAIL  redis                        is a replica, which accepts no writes: ") != want || (err != nil) != want {
			t.Errorf("%s: error %v, want one: %v; output\n%s", role, err, want, out)
		}
	}
}

func TestCheckReportsEveryFailure(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{"logins": 1})
	out, err := weir(t, "run", "--check", "--features", shipped,
		"--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", "127.0.0.1:1")
	if want := "5 checks failed"; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, want := range []string{
		"ok    topic logins                 1 partition\n",
		"FAIL  topic transactions           no topic transactions: create it, or set kafka.create_topics; with ACLs, allow Describe on it\n",
		"FAIL  topic weir.dead-letters      no topic weir.dead-letters: create it, or set kafka.create_topics; with ACLs, allow Describe on it\n",
		"FAIL  redis                        127.0.0.1:1: nothing listens at 127.0.0.1:1: check the address, and that the server runs\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the line\n%s\nis not in\n%s", want, out)
		}
	}

	out, err = weir(t, "run", "--check", "--roles", "processor", "--features", shipped,
		"--kafka.brokers", "127.0.0.1:1", "--redis.addresses", "127.0.0.1:1")
	if fmt.Sprint(err) != "2 checks failed" || !strings.Contains(out, "FAIL  kafka                        127.0.0.1:1: nothing listens at 127.0.0.1:1: check the address, and that the server runs\n") {
		t.Errorf("want 2 failed checks: error %v, output\n%s", err, out)
	}
}

// A processor needs a stream: without one it would be ready, and apply nothing.
func TestRunWithoutStreams(t *testing.T) {
	t.Parallel()
	flags := []string{"--features", writeFile(t, t.TempDir(), "features.yaml", noStream),
		"--api.listen", "127.0.0.1:0", "--kafka.brokers", "127.0.0.1:1", "--redis.addresses", "127.0.0.1:1"}
	const want = "no stream is defined"
	if _, err := weir(t, append([]string{"run"}, flags...)...); fmt.Sprint(err) != want {
		t.Errorf("got error %v, want %s", err, want)
	}
	out, err := weir(t, append([]string{"run", "--check"}, flags...)...)
	if err == nil || !regexp.MustCompile("(?m)^FAIL  features +"+want+"$").MatchString(out) {
		t.Errorf("no check fails because %s: error %v\n%s", want, err, out)
	}
	if out, _ := weir(t, append([]string{"run", "--check", "--roles", "api"}, flags...)...); strings.Contains(out, want) {
		t.Errorf("an API needs a stream:\n%s", out)
	}
}
