package main

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit"
)

// Both looks reach the replicas that questions are read from; a process without
// the API reads none.
func TestLooksAtReplicas(t *testing.T) {
	master := testkit.NewRedis(t, testkit.RedisOptions{AOF: true})
	replica := testkit.NewRedisReplica(t, master.Addr())
	broker := testkit.Kfake(t, allTopics)
	flags := []string{"--features", shipped, "--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", master.Addr(),
		"--redis.read_from", "replica", "--redis.replicas", replica.Addr()}
	check, doctor := append([]string{"run", "--check"}, flags...), append([]string{"doctor"}, flags...)
	wants := func(out, want string) {
		t.Helper()
		if !regexp.MustCompile("(?m)^" + want + "$").MatchString(out) {
			t.Errorf("no line is like\n%s\nin\n%s", want, out)
		}
	}
	wants(look(t, "", check...), `ok    replicas                     1 of 1 answer, no staler than \d+ms`)
	wants(look(t, "", doctor...), `OK    replicas +1 of 1 answer, no staler than \d+ms`)
	if out := look(t, "", append(check, "--roles", "processor")...); strings.Contains(out, "replica") {
		t.Errorf("a processor was checked for replicas:\n%s", out)
	}
	replica.Kill()
	_, port, _ := net.SplitHostPort(replica.Addr())
	refused := regexp.QuoteMeta("replica "+replica.Addr()) + ` +dial tcp \S*:` + port + ": connect: connection refused"
	out := look(t, "", check...)
	wants(out, "warn  replicas                     none answers: questions go to masters; mend them, or set redis.read_from: master")
	wants(out, "warn  "+refused+"; see that it runs, .*")
	out = look(t, "", doctor...)
	wants(out, "WARN  replicas +none answers: questions go to masters")
	wants(out, "WARN  "+refused)
}

// The connections to masters and to replicas are told apart, and those are among
// them that carry pipelines.
func TestConnectionsToReplicas(t *testing.T) {
	master := testkit.NewRedis(t, testkit.RedisOptions{})
	replica := testkit.NewRedisReplica(t, master.Addr())
	cfg := &config.Config{Redis: config.Redis{Mode: "single", ReadFrom: "replica", Addresses: []string{master.Addr()}, Replicas: []string{replica.Addr()}}}
	replicas, err := cfg.RedisReplicas()
	if err != nil {
		t.Fatal(err)
	}
	defer replicas.Close()
	client := master.Client(t)
	for range 2 {
		for _, c := range []redis.UniversalClient{client, replicas} {
			pipe := c.Pipeline()
			pipe.Exists(t.Context(), "key")
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	stats := replicas.PoolStats() // it makes connections of its own
	want := `
# HELP weir_redis_connections Connections to Redis by client (master; replica, which reads questions from replicas) and state: idle, in_use.
# TYPE weir_redis_connections gauge
weir_redis_connections{client="master",state="idle"} 2
weir_redis_connections{client="master",state="in_use"} 0
weir_redis_connections{client="replica",state="idle"} ` + fmt.Sprint(stats.TotalConns+stats.PipelineStats.TotalConns) + `
weir_redis_connections{client="replica",state="in_use"} 0
`
	if err := testutil.CollectAndCompare(poolMetrics{client, replicas, func() (int, int) { return 0, 0 }}, strings.NewReader(want), "weir_redis_connections"); err != nil {
		t.Error(err)
	}
	p := start(t, "run", "--roles", "api", "--features", shipped, "--api.listen", "127.0.0.1:0", "--redis.addresses", master.Addr(),
		"--redis.read_from", "replica", "--redis.replicas", replica.Addr())
	if _, metrics := statusOf(t, p.address(t)+"/metrics"); !strings.Contains(metrics, "\nweir_redis_connections{client=\"replica\",state=\"idle\"} ") {
		t.Errorf("a process tells of no replica:\n%s", metrics)
	}
}
