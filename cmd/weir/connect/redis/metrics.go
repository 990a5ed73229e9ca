package redisconn

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

var (
	poolConnections = prometheus.NewDesc("weir_redis_connections",
		"Connections to Redis by client (master; replica, which reads questions from replicas) and state: idle, in_use.",
		[]string{"client", "state"}, nil)
	poolWaits = prometheus.NewDesc("weir_redis_pool_timeouts_total",
		"Requests that got no connection to Redis in time, by client.", []string{"client"}, nil)
	poolReuse = prometheus.NewDesc("weir_redis_pool_requests_total",
		"Requests for a connection to Redis by client and result: hit, miss (one had to be made).", []string{"client", "result"}, nil)
	mastersUnavailable = prometheus.NewDesc("weir_redis_masters_unavailable",
		"Redis masters that do not answer this process.", nil, nil)
	shardsUnavailable = prometheus.NewDesc("weir_redis_shards_unavailable",
		"State shards of the Redis masters that do not answer this process.", nil, nil)
	emptiedKeys = prometheus.NewDesc("weir_redis_emptied_keys_total",
		"State keys that were deleted because their shard had lost its progress; it is read again from the log.", nil, nil)
)

// Describe sends the descriptions of the metrics of the connections.
func (d *Deployment) Describe(to chan<- *prometheus.Desc) {
	to <- poolConnections
	to <- poolWaits
	to <- poolReuse
	to <- mastersUnavailable
	to <- shardsUnavailable
	to <- emptiedKeys
}

// Collect sends the current values.
func (d *Deployment) Collect(to chan<- prometheus.Metric) {
	collectPool(to, "master", d.Client.PoolStats())
	masters, shards := d.unavailable()
	to <- prometheus.MustNewConstMetric(mastersUnavailable, prometheus.GaugeValue, float64(masters))
	to <- prometheus.MustNewConstMetric(shardsUnavailable, prometheus.GaugeValue, float64(shards))
	to <- prometheus.MustNewConstMetric(emptiedKeys, prometheus.CounterValue, float64(d.emptied.Load()))
	if d.Replicas != nil {
		collectPool(to, "replica", d.Replicas.PoolStats())
	}
}

// unavailable returns the number of masters that do not answer, and of their shards.
func (d *Deployment) unavailable() (masters, shards int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	list := d.Unavailable(ctx)
	for _, m := range list {
		shards += m.Shards
	}
	return len(list), shards
}

// collectPool sends the values of a client. It keeps separate connections for pipelines, which most
// requests use.
func collectPool(to chan<- prometheus.Metric, client string, s *redis.PoolStats) {
	total, idle, hits, misses := s.TotalConns, s.IdleConns, s.Hits, s.Misses
	if p := s.PipelineStats; p != nil {
		total, idle, hits, misses = total+p.TotalConns, idle+p.IdleConns, hits+p.Hits, misses+p.Misses
	}
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(idle), client, "idle")
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(total-idle), client, "in_use")
	to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(s.Timeouts), client)
	to <- prometheus.MustNewConstMetric(poolReuse, prometheus.CounterValue, float64(hits), client, "hit")
	to <- prometheus.MustNewConstMetric(poolReuse, prometheus.CounterValue, float64(misses), client, "miss")
}
