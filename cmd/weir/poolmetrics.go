package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

// poolMetrics tells Prometheus of the connections to Redis.
type poolMetrics struct{ client redis.UniversalClient }

var (
	poolConnections = prometheus.NewDesc("weir_redis_connections",
		"Connections to Redis by state: idle, in_use.", []string{"state"}, nil)
	poolWaits = prometheus.NewDesc("weir_redis_pool_timeouts_total",
		"Requests that got no connection to Redis in time.", nil, nil)
	poolReuse = prometheus.NewDesc("weir_redis_pool_requests_total",
		"Requests for a connection to Redis by result: hit, miss (one had to be made).", []string{"result"}, nil)
)

// Describe sends what there is to tell.
func (m poolMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- poolConnections
	to <- poolWaits
	to <- poolReuse
}

// Collect sends it as it stands.
func (m poolMetrics) Collect(to chan<- prometheus.Metric) {
	s := m.client.PoolStats()
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(s.IdleConns), "idle")
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(s.TotalConns-s.IdleConns), "in_use")
	to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(s.Timeouts))
	to <- prometheus.MustNewConstMetric(poolReuse, prometheus.CounterValue, float64(s.Hits), "hit")
	to <- prometheus.MustNewConstMetric(poolReuse, prometheus.CounterValue, float64(s.Misses), "miss")
}
