package node

import (
	"fmt"
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
	stats := replicas.PoolStats() // it opens connections of its own
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
}
