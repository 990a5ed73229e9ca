package follow

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features"
)

// metrics are those of all tables of the definitions in use.
type metrics struct {
	follower         *Follower
	rows, bytes, age *prometheus.Desc
	bad              *prometheus.CounterVec
}

func newMetrics(f *Follower) *metrics {
	return &metrics{
		follower: f,
		rows:     prometheus.NewDesc("weir_table_rows", "Rows of tables in the memory of the process, by table.", []string{"table"}, nil),
		bytes:    prometheus.NewDesc("weir_table_bytes", "About how many bytes the rows of tables take in the memory of the process, by table.", []string{"table"}, nil),
		age:      prometheus.NewDesc("weir_table_lag_seconds", "How long ago the process last knew all rows of a table, by table; +Inf if it never did.", []string{"table"}, nil),
		bad: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_table_bad_records_total", Help: "Records of tables that could not be read, so that their rows are missing, by table.",
		}, []string{"table"}),
	}
}

// begin makes the series of a table in a topic, at 0: a series that began with its first bad record would show no rise.
func (m *metrics) begin(t *features.Table) {
	if t.File == "" {
		m.bad.WithLabelValues(t.Name)
	}
}

func (m *metrics) forget(t *features.Table) { m.bad.DeleteLabelValues(t.Name) }

// Describe describes the metrics of tables.
func (f *Follower) Describe(to chan<- *prometheus.Desc) {
	m := f.metrics
	to <- m.rows
	to <- m.bytes
	to <- m.age
	m.bad.Describe(to)
}

// Collect collects the metrics of tables.
func (f *Follower) Collect(to chan<- prometheus.Metric) {
	m, now := f.metrics, time.Now()
	for _, h := range f.All() {
		rows, bytes, age, _ := h.State(now)
		lag := age.Seconds()
		if age < 0 {
			lag = math.Inf(1)
		}
		for desc, value := range map[*prometheus.Desc]float64{m.rows: float64(rows), m.bytes: float64(bytes), m.age: lag} {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, h.Table.Name)
		}
	}
	m.bad.Collect(to)
}
