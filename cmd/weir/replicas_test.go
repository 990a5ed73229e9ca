package main

import (
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Both the check and the doctor contact the replicas that questions read from; a process without
// the API reads none.
func TestCheckAndDoctorContactReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{AOF: true})
	replica := redistest.NewReplica(t, master.Addr())
	broker := kafkatest.Embedded(t, allTopics)
	flags := []string{"--features", shipped, "--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", master.Addr(),
		"--redis.read_from", "replica", "--redis.replicas", replica.Addr()}
	check, doctor := append([]string{"run", "--check"}, flags...), append([]string{"doctor"}, flags...)
	wants := func(out, want string) {
		t.Helper()
		if !regexp.MustCompile("(?m)^" + want + "$").MatchString(out) {
			t.Errorf("no line matches\n%s\nin\n%s", want, out)
		}
	}
	wants(look(t, "", check...), `ok    replicas                     1 of 1 answer, no staler than \d+ms`)
	wants(look(t, "", doctor...), `OK    replicas +1 of 1 answer, no staler than \d+ms`)
	if out := look(t, "", append(check, "--roles", "processor")...); strings.Contains(out, "replica") {
		t.Errorf("the check of a processor names replicas:\n%s", out)
	}
	replica.Kill()
	_, port, _ := net.SplitHostPort(replica.Addr())
	refused := regexp.QuoteMeta("replica "+replica.Addr()) + ` +nothing listens at \S*:` + port + ": check the address, and that the server runs"
	out := look(t, "", check...)
	wants(out, "warn  replicas                     none answers: questions go to masters; repair them, or set redis.read_from: master")
	wants(out, "warn  "+refused+"; check that it runs, .*")
	out = look(t, "", doctor...)
	wants(out, "WARN  replicas +none answers: questions go to masters")
	wants(out, "WARN  "+refused)
}

// A process that reads from replicas exports metrics of its connections to them.
func TestMetricsOfReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplica(t, master.Addr())
	p := start(t, "run", "--roles", "api", "--features", shipped, "--api.listen", "127.0.0.1:0", "--redis.addresses", master.Addr(),
		"--redis.read_from", "replica", "--redis.replicas", replica.Addr())
	if _, metrics := statusOf(t, p.address(t)+"/metrics"); !strings.Contains(metrics, "\nweir_redis_connections{client=\"replica\",state=\"idle\"} ") {
		t.Errorf("a process has no metrics of its replica:\n%s", metrics)
	}
}
