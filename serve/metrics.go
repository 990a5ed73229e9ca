package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The outcomes of a question.
const (
	answered    = "answered"
	refused     = "refused"     // the question was wrong
	unavailable = "unavailable" // the store was
	failed      = "failed"      // a defect
)

type metrics struct {
	seconds  *prometheus.HistogramVec
	values   prometheus.Histogram
	asked    *prometheus.CounterVec
	inFlight prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	factory := promauto.With(r)
	return &metrics{
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_question_duration_seconds",
			Help:    "Time from a question's arrival to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15), // to 1.6 s
		}, []string{"outcome"}),
		values: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_question_values",
			Help:    "Values that a question asks for: features times entities.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
		asked: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_question_features_total",
			Help: "Values asked for, by feature.",
		}, []string{"feature"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "weir_questions_in_flight",
			Help: "Questions that are being answered.",
		}),
	}
}

// ask counts what a question asks for.
func (m *metrics) ask(q *question) {
	n := len(q.entities)
	m.values.Observe(float64(n * len(q.plans)))
	for _, p := range q.plans {
		p.asked.Add(float64(n))
	}
}
