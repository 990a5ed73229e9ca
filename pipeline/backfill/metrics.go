package backfill

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/metric"
	"github.com/weir-stream/weir/state"
)

type metrics struct {
	records *prometheus.CounterVec
	left    *prometheus.GaugeVec
	broken  *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	maker := metric.For(r)
	return &metrics{
		records: maker.Counters("weir_backfill_records_total",
			"Records that backfills have applied to new features, by topic.", "topic"),
		left: maker.Gauges("weir_backfill_left_records",
			"Offsets that are still to be backfilled of the partitions assigned, by fill and topic.", "fill", "topic"),
		broken: maker.Gauges("weir_backfill_broken_partitions",
			"Partitions assigned of which a backfill was given up, by fill and topic: what is still needed of it is filled again.", "fill", "topic"),
	}
}

// set sets the metrics of a fill.
func (m *metrics) set(f *state.Fill, left map[string]int64, broken map[string]int) {
	for topic := range f.Columns {
		m.left.WithLabelValues(f.ID, topic).Set(float64(left[topic]))
		m.broken.WithLabelValues(f.ID, topic).Set(float64(broken[topic]))
	}
}

// forget removes the metrics of a fill that is no longer worked on.
func (m *metrics) forget(f *state.Fill) {
	for topic := range f.Columns {
		m.left.DeleteLabelValues(f.ID, topic)
		m.broken.DeleteLabelValues(f.ID, topic)
	}
}
