package redisconn

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
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
