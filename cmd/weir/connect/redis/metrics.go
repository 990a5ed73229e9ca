package redisconn

import (
	"context"
	"sync"
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
	evictedKeys = prometheus.NewDesc("weir_redis_evicted_keys_total",
		"Keys that Redis has evicted, as this process has noticed: answers that reach back to before are INCOMPLETE.", nil, nil)
	clockJumps = prometheus.NewDesc("weir_redis_clock_jumps_total",
		"How often this process has noticed that the clock of a Redis master was set, ahead or back, by more than ten seconds.", nil, nil)
)

// Describe sends the descriptions of the metrics of the connections.
func (d *Deployment) Describe(to chan<- *prometheus.Desc) {
	to <- poolConnections
	to <- poolWaits
	to <- poolReuse
	to <- mastersUnavailable
	to <- shardsUnavailable
	to <- emptiedKeys
	to <- evictedKeys
	to <- clockJumps
}

// Collect sends the current values.
func (d *Deployment) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	d.masters.collect(to, "master", func() *redis.PoolStats { return poolStats(ctx, d.Client) })
	masters, shards := d.unavailable(ctx)
	to <- prometheus.MustNewConstMetric(mastersUnavailable, prometheus.GaugeValue, float64(masters))
	to <- prometheus.MustNewConstMetric(shardsUnavailable, prometheus.GaugeValue, float64(shards))
	to <- prometheus.MustNewConstMetric(emptiedKeys, prometheus.CounterValue, float64(d.emptied.Load()))
	to <- prometheus.MustNewConstMetric(evictedKeys, prometheus.CounterValue, float64(d.evicted.Load()))
	to <- prometheus.MustNewConstMetric(clockJumps, prometheus.CounterValue, float64(d.jumps.Load()))
	if d.Replicas != nil {
		d.replicas.collect(to, "replica", func() *redis.PoolStats { return poolStats(ctx, d.Replicas) })
	}
}

// collectWithin bounds how long the values wait for the servers of a cluster.
const collectWithin = time.Second

// poolStats returns what a client has counted: nothing while it does not know the servers of its cluster. It would first
// ask for them, and servers that do not answer let it wait for minutes.
func poolStats(ctx context.Context, client redis.UniversalClient) *redis.PoolStats {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		if _, err := cluster.MasterForKey(ctx, ""); err != nil {
			return new(redis.PoolStats)
		}
	}
	return client.PoolStats()
}

// unavailable returns the number of masters that do not answer, and of their shards.
func (d *Deployment) unavailable(ctx context.Context) (masters, shards int) {
	list := d.Unavailable(ctx)
	for _, m := range list {
		shards += m.Shards
	}
	return len(list), shards
}

// poolCounters are what a client's connections have counted.
type poolCounters struct {
	mu                     sync.Mutex
	hits, misses, timeouts grown
}

// grown is a counter that only grows. The client's own become less when a server leaves the cluster, and begin again
// after 2^32.
type grown struct {
	last uint32
	sum  float64
}

// to returns the sum for the client's present count.
func (g *grown) to(now uint32) float64 {
	if rise := now - g.last; rise < 1<<31 {
		g.sum += float64(rise)
	}
	g.last = now
	return g.sum
}

// collect sends the values of a client. It keeps separate connections for pipelines, which most requests use. If none of
// these is free, a pipeline waits for one of the others.
func (c *poolCounters) collect(to chan<- prometheus.Metric, client string, read func() *redis.PoolStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := read()
	total, idle, hits, misses := s.TotalConns, s.IdleConns, s.Hits, s.Misses
	if p := s.PipelineStats; p != nil {
		total, idle, hits, misses = total+p.TotalConns, idle+p.IdleConns, hits+p.Hits, misses+p.Misses
	}
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, float64(idle), client, "idle")
	to <- prometheus.MustNewConstMetric(poolConnections, prometheus.GaugeValue, max(0, float64(total)-float64(idle)), client, "in_use") // they are not read at once
	to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, c.timeouts.to(s.Timeouts), client)
	to <- prometheus.MustNewConstMetric(poolReuse, prometheus.CounterValue, c.hits.to(hits), client, "hit")
	to <- prometheus.MustNewConstMetric(poolReuse, prometheus.CounterValue, c.misses.to(misses), client, "miss")
}
