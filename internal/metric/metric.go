// Package metric makes and registers the metrics of Prometheus that the parts of a process count.
package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Maker makes metrics. Its methods panic if a metric of the name is registered already.
type Maker struct{ to promauto.Factory }

// For returns a maker of metrics that are registered with r.
func For(r prometheus.Registerer) Maker { return Maker{promauto.With(r)} }

// Counter makes a counter.
func (m Maker) Counter(name, help string) prometheus.Counter {
	return m.to.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// Counters makes a counter for all values of labels.
func (m Maker) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return m.to.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Gauge makes a gauge.
func (m Maker) Gauge(name, help string) prometheus.Gauge {
	return m.to.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// Gauges makes a gauge for all values of labels.
func (m Maker) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.to.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Histogram makes a histogram with upper bounds.
func (m Maker) Histogram(name, help string, bounds []float64) prometheus.Histogram {
	return m.to.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
}

// Histograms makes a histogram with upper bounds for all values of labels.
func (m Maker) Histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return m.to.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
}
