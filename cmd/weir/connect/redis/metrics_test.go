package redisconn

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// The metrics separate connections to masters from those to replicas, and include those of
// pipelines.
func TestConnectionsToReplicas(t *testing.T) {
	master := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplica(t, master.Addr())
	cfg := config.Default()
	cfg.Redis.ReadFrom, cfg.Redis.Addresses, cfg.Redis.Replicas = "replica", []string{master.Addr()}, []string{replica.Addr()}
	d, err := Open(cfg, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		for _, c := range []redis.UniversalClient{d.Client, d.Replicas} {
			pipe := c.Pipeline()
			pipe.Exists(t.Context(), "key")
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	stats := d.Replicas.PoolStats() // it opens connections of its own
	want := `
# HELP weir_redis_connections Connections to Redis by client (master; replica, which reads questions from replicas) and state: idle, in_use.
# TYPE weir_redis_connections gauge
weir_redis_connections{client="master",state="idle"} 2
weir_redis_connections{client="master",state="in_use"} 0
weir_redis_connections{client="replica",state="idle"} ` + fmt.Sprint(stats.TotalConns+stats.PipelineStats.TotalConns) + `
weir_redis_connections{client="replica",state="in_use"} 0
`
	if err := testutil.CollectAndCompare(d, strings.NewReader(want), "weir_redis_connections"); err != nil {
		t.Error(err)
	}
}

// Servers of a cluster that accept connections and answer nothing do not keep a scrape waiting.
func TestMetricsWhileAClusterHangs(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := config.Default()
	cfg.Redis.Mode, cfg.Redis.ReadFrom, cfg.Redis.Addresses = "cluster", "replica", []string{silent.Addr().String()}
	cfg.Redis.DialTimeout, cfg.Redis.ReadTimeout = time.Minute, time.Minute
	d, err := Open(cfg, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	values := make(chan prometheus.Metric, 100)
	go func() {
		d.Collect(values)
		close(values)
	}()
	late := time.After(20 * time.Second) // the client would wait for a minute
	for n := 0; ; n++ {
		select {
		case _, more := <-values:
			if !more {
				if n != 15 {
					t.Errorf("%d values, want all 15", n)
				}
				return
			}
		case <-late:
			t.Fatalf("%d values after 20 s, want all", n)
		}
	}
}

// A counter never falls: not when a server leaves the cluster with what it had counted, and not after 2^32.
func TestCountersOnlyGrow(t *testing.T) {
	var g grown
	for i, step := range []struct {
		now  uint32
		want float64
	}{{5, 5}, {7, 7}, {7, 7}, {3, 7}, {4, 8}, {0, 8}, {1<<31 - 1, 8 + 1<<31 - 1}, {1<<32 - 1, 8 + 1<<31 - 1}} {
		if got := g.to(step.now); got != step.want {
			t.Errorf("step %d: the counter is %v, want %v", i, got, step.want)
		}
	}
	g = grown{last: 1<<32 - 2, sum: 10}
	if got := g.to(3); got != 15 {
		t.Errorf("after 2^32 the counter is %v, want 15", got)
	}
}

// A connection that is made between the looks at all and at the idle ones is not one of four billion in use.
func TestConnectionsInUse(t *testing.T) {
	values := make(chan prometheus.Metric, 5)
	new(poolCounters).collect(values, "master", func() *redis.PoolStats { return &redis.PoolStats{TotalConns: 1, IdleConns: 2} })
	for range 2 {
		var m dto.Metric
		if err := (<-values).Write(&m); err != nil {
			t.Fatal(err)
		}
		if n := m.GetGauge().GetValue(); n > 2 {
			t.Errorf("%v: %v connections, want at most 2", m.GetLabel(), n)
		}
	}
}
