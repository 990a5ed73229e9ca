package pipeline

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/metric"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// metrics are the processor's Prometheus metrics.
type metrics struct {
	events      *prometheus.CounterVec
	dead        *prometheus.CounterVec
	rewinds     *prometheus.CounterVec
	lost        *prometheus.CounterVec
	vanished    *prometheus.CounterVec
	stopped     *prometheus.GaugeVec
	broken      *prometheus.CounterVec
	absent      *prometheus.CounterVec
	enriched    *prometheus.CounterVec
	refused     prometheus.Counter
	cutKeys     prometheus.Counter
	greatestKey *peak
	damaged     prometheus.Counter
	forged      prometheus.Counter
	forgotten   *prometheus.CounterVec
	batches     prometheus.Counter
	batchSize   prometheus.Histogram
	apply       prometheus.Histogram
	enrich      prometheus.Histogram
	freshness   prometheus.Histogram
	lag         *prometheus.GaugeVec
	open        *prometheus.GaugeVec
	openAge     *prometheus.GaugeVec
	partitions  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	maker := metric.For(r)
	m := &metrics{
		events: maker.Counters("weir_events_total",
			"Records by stream and outcome: applied, late (applied, but too late for at least one feature), dead, repeated (it is not the first record with the ID within the stream's dedup, and does not count), unmatched (of no stream, or a replayed event of another namespace). Those read again after a rewind, or for shards that lag, count again.", "stream", "outcome"),
		dead: maker.Counters("weir_dead_letters_total",
			"Records written to the dead-letter topic, by stream and reason.", "stream", "reason"),
		rewinds: maker.Counters("weir_rewinds_total",
			"Partitions read again because the store went back in time or was spread over more shards, or another owner, plan or leader took the partition, by topic.", "topic"),
		lost: maker.Counters("weir_lost_records_total",
			"Records that were not applied and are no longer in the log, by topic.", "topic"),
		broken: maker.Counters("weir_broken_batches_total",
			"How often a batch of the log could not be decoded, by topic and outcome: stopped (the partition waits and tries again), set_aside.", "topic", "outcome"),
		absent: maker.Counters("weir_absent_offsets_total",
			"Offsets between those read that no batch of the log has, by topic. Compaction leaves them; in a topic that was never compacted, records were lost.", "topic"),
		vanished: maker.Counters("weir_vanished_records_total",
			"Records that were applied and have vanished from a log that was truncated, by topic.", "topic"),
		stopped: maker.Gauges("weir_stopped_partitions", "Partitions assigned that cannot go on, by topic and reason: "+
			"superseded, loss, other_log, stale_leader, beyond_end, open_transaction, broken_batch, schema_registry, error; /readyz says more.", "topic", "reason"),
		enriched: maker.Counters("weir_enriched_events_total",
			"Events written with their features, by stream; those written again count again.", "stream"),
		enrich: maker.Histogram("weir_enrich_seconds",
			"Time to read the features of a batch's enriched events and to write the events.",
			prometheus.ExponentialBuckets(0.0005, 2, 14)),
		refused: maker.Counter("weir_refused_mutations_total",
			"Mutations that the store refused because the key is of another type, and keys with damaged data that were compacted, each counted once a minute."),
		cutKeys: maker.Counter("weir_cut_keys_total",
			"Compactions that dropped the oldest state of an entity, since its key took too much; its features are INCOMPLETE."),
		damaged: maker.Counter("weir_enriched_damaged_total",
			"Values that enriched events lack because the state of their entity is damaged."),
		forged: maker.Counter("weir_forged_headers_total",
			"Records of events with headers that only Weir writes and without its seal. They are events like any other."),
		forgotten: maker.Counters("weir_forgotten_ids_total",
			"IDs that were forgotten within the stream's dedup, because the partition has more records within it than are remembered, by topic: later repetitions count.", "topic"),
		batches: maker.Counter("weir_batches_total", "Batches applied."),
		batchSize: maker.Histogram("weir_batch_events", "Records in a batch.",
			prometheus.ExponentialBuckets(1, 4, 8)),
		apply: maker.Histogram("weir_apply_seconds",
			"Time to write a batch to the store, waiting for it included; dead letters and enriched events are written before.",
			prometheus.ExponentialBuckets(0.0005, 2, 14)),
		freshness: maker.Histogram("weir_freshness_seconds", "Time from a record's timestamp until it was applied.",
			// To 40 s. An alert fires at 5 s: between bounds a quantile is only guessed.
			append(prometheus.ExponentialBuckets(0.001, 2, 12), prometheus.ExponentialBuckets(5, 2, 4)...)),
		lag: maker.Gauges("weir_lag_records",
			"Offsets up to the high watermark that some shard has still to process, those of open transactions included, by partition assigned.", "topic", "partition"),
		open: maker.Gauges("weir_open_transaction_records",
			"Offsets after the last stable offset, which an open transaction blocks, by partition assigned.", "topic", "partition"),
		openAge: maker.Gauges("weir_open_transaction_age_seconds",
			"How long the last stable offset has not moved while there are offsets after it, as far as this process has seen, by partition assigned.", "topic", "partition"),
		partitions: maker.Gauge("weir_assigned_partitions", "Partitions assigned to this processor."),
	}
	m.greatestKey = newPeak("weir_greatest_key_bytes",
		"Length of the longest state key that was compacted within the last 5 to 10 minutes: what keys grow to. By default none is above 1 MiB.", time.Now)
	r.MustRegister(m.greatestKey)
	return m
}

// applied records a batch that was written at a moment, in milliseconds.
func (m *metrics) applied(b *workerBatch, now int64) {
	m.batches.Inc()
	m.batchSize.Observe(float64(b.events))
	for _, t := range b.timestamps {
		if !b.Ranges[t.rangeIndex].Behind {
			m.freshness.Observe(float64(now-t.at) / 1000)
		}
	}
	for o, n := range b.outcomes {
		if !b.Ranges[o.rangeIndex].Behind {
			m.events.WithLabelValues(o.stream, o.what).Add(float64(n))
		}
	}
	for _, d := range b.dead {
		if !d.due || b.Ranges[d.rangeIndex].Behind {
			continue // it was written before, or is read and written again
		}
		m.dead.WithLabelValues(d.stream, string(d.reason)).Inc()
	}
	m.greatestKey.observe(float64(b.GreatestKey))
	m.refused.Add(float64(b.Refused))
	m.cutKeys.Add(float64(b.CutKeys))
}

// lagGauges shows the lag of a partition. They are looked up once, since each fetch sets them.
type lagGauges struct {
	records, open, openAge prometheus.Gauge

	mu   sync.Mutex
	sets int // how often a fetch has set them
}

func (m *metrics) lagOf(p state.Partition) *lagGauges {
	id := strconv.Itoa(int(p.ID))
	return &lagGauges{records: m.lag.WithLabelValues(p.Topic, id), open: m.open.WithLabelValues(p.Topic, id), openAge: m.openAge.WithLabelValues(p.Topic, id)}
}

func (g *lagGauges) set(lag fetch.Lag) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sets++
	g.records.Set(float64(lag.Records))
	g.open.Set(float64(lag.Open))
	g.openAge.Set(lag.OpenFor.Seconds())
}

// soFar returns how often a fetch has set the gauges.
func (g *lagGauges) soFar() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sets
}

// measured shows what a look at the log has found that began after so many fetches, unless one has come meanwhile: more
// may have been applied since. It does not tell how long a transaction has been open.
func (g *lagGauges) measured(log *fetch.Log, applied int64, sets int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sets != sets {
		return
	}
	g.records.Set(float64(max(0, log.End-applied)))
	g.open.Set(float64(log.End - log.Stable))
	if log.End == log.Stable {
		g.openAge.Set(0)
	}
}

// reportLag shows the lag of a partition as of the last answer to a fetch.
func (w *worker) reportLag(p *assignedPartition) {
	if lag, known := w.poller.Lag(p.Topic, p.ID, p.processed()); known {
		if p.gauges == nil {
			p.gauges = w.metrics.lagOf(p.Partition)
		}
		p.gauges.set(lag)
		p.reported = time.Now()
	}
}

// measureLag asks the brokers for the lag of partitions of which nothing has come for a while: they are stopped, or the
// store takes no batch, so what their gauges show would stay as it was. Idle ones, which look the same from here, are asked for
// with the same requests.
func (w *worker) measureLag(ctx context.Context) {
	type measure struct {
		gauges  *lagGauges
		applied int64
		sets    int
	}
	var ids []state.Partition
	var measures []measure
	for id, p := range w.partitions {
		if p.gauges != nil && p.phase != leaving && time.Since(p.reported) >= patiently*w.cfg.lookInterval() {
			p.reported = time.Now()
			ids, measures = append(ids, id), append(measures, measure{p.gauges, p.processed(), p.gauges.soFar()})
		}
	}
	if len(ids) == 0 {
		return
	}
	w.recovering.Go(func() {
		logs, err := w.poller.Logs(ctx, ids)
		for i := range logs {
			if err == nil && logs[i].Err == nil {
				measures[i].gauges.measured(&logs[i], measures[i].applied, measures[i].sets)
			}
		}
	})
}

// forget removes the lag of a released partition.
func (m *metrics) forget(p state.Partition) {
	id := strconv.Itoa(int(p.ID))
	for _, gauge := range []*prometheus.GaugeVec{m.lag, m.open, m.openAge} {
		gauge.DeleteLabelValues(p.Topic, id)
	}
}

// assigned sets the processor's partitions. Counters used by alerts start at 0: Prometheus does not
// see a rise from a missing series.
func (m *metrics) assigned(partitions []state.Partition) {
	m.partitions.Set(float64(len(partitions)))
	for _, p := range partitions {
		m.rewinds.WithLabelValues(p.Topic)
		m.lost.WithLabelValues(p.Topic)
		m.broken.WithLabelValues(p.Topic, brokenStopped)
		m.broken.WithLabelValues(p.Topic, brokenSetAside)
		m.absent.WithLabelValues(p.Topic)
		m.vanished.WithLabelValues(p.Topic)
	}
}

// peakAge is the least time that a peak counts, in milliseconds; it counts for at most twice as long.
const peakAge = 5 * 60 * 1000

// peak is a gauge of the greatest recent value. It is computed when it is read, since there may be no values any more.
type peak struct {
	desc *prometheus.Desc
	now  func() time.Time

	mu              sync.Mutex
	begun           int64 // start of the current values, in milliseconds
	latest, earlier float64
}

func newPeak(name, help string, now func() time.Time) *peak {
	return &peak{desc: prometheus.NewDesc(name, help, nil, nil), now: now}
}

// Describe sends the description of the gauge.
func (p *peak) Describe(to chan<- *prometheus.Desc) { to <- p.desc }

// Collect sends the current value.
func (p *peak) Collect(to chan<- prometheus.Metric) {
	p.observe(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	to <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, max(p.latest, p.earlier))
}

// observe records a value.
func (p *peak) observe(value float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.now().UnixMilli()
	switch age := at - p.begun; {
	case age >= 2*peakAge:
		p.begun, p.earlier, p.latest = at, 0, 0
	case age >= peakAge:
		p.begun, p.earlier, p.latest = at, p.latest, 0
	}
	p.latest = max(p.latest, value)
}
