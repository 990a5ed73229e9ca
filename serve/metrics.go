package serve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The outcomes of a question.
const (
	answered    = "answered"
	refused     = "refused"     // the question was wrong
	unavailable = "unavailable" // the store did not answer
	overloaded  = "overloaded"  // there were too many questions at the same time
	abandoned   = "abandoned"   // the client hung up before it had an answer
	failed      = "failed"      // a defect
)

type metrics struct {
	seconds      *prometheus.HistogramVec
	values       prometheus.Histogram
	staleness    prometheus.Histogram
	asked        *prometheus.CounterVec
	inFlight     prometheus.Gauge
	unauthorized *prometheus.CounterVec
	panics       prometheus.Counter
	damaged      prometheus.Counter
	unavailable  prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	factory := promauto.With(r)
	return &metrics{
		seconds: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_question_duration_seconds",
			Help: "Time from a question's arrival to its answer.",
			// To 1.6 s. An alert fires at 50 ms: between bounds a quantile is only guessed.
			Buckets: append(prometheus.ExponentialBuckets(0.0001, 2, 9), prometheus.ExponentialBuckets(0.05, 2, 6)...),
		}, []string{"outcome"}),
		values: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_question_values",
			Help:    "Values that a question asks for: features, or their members, times entities.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}),
		staleness: factory.NewHistogram(prometheus.HistogramOpts{
			Name:    "weir_question_staleness_seconds",
			Help:    "How old at the most the state was that a question read from a replica; those that read from masters alone are not counted.",
			Buckets: prometheus.ExponentialBuckets(0.025, 2, 10), // to 12.8 s
		}),
		asked: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_question_features_total",
			Help: "Values asked for, by feature.",
		}, []string{"feature"}),
		inFlight: factory.NewGauge(prometheus.GaugeOpts{
			Name: "weir_questions_in_flight",
			Help: "Questions that are being answered.",
		}),
		unauthorized: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_requests_refused_total",
			Help: "Requests without the required token or certificate, or to an unknown host, by the error's code.",
		}, []string{"code"}),
		damaged: factory.NewCounter(prometheus.CounterOpts{
			Name: "weir_damaged_answers_total",
			Help: "Values that answers lack because the state of their entity is damaged.",
		}),
		unavailable: factory.NewCounter(prometheus.CounterOpts{
			Name: "weir_unavailable_answers_total",
			Help: "Values that answers lack because the server of the store that holds their entity did not answer, or because a table cannot.",
		}),
		panics: factory.NewCounter(prometheus.CounterOpts{
			Name: "weir_panics_total",
			Help: "Requests that met a defect; the log has the stack of each.",
		}),
	}
}

// ask counts what a question asks for.
func (m *metrics) ask(q *asked) {
	n := len(q.entities.sent)
	m.values.Observe(float64(n * q.answers()))
	for i, p := range q.features {
		from, to := q.members.of(i)
		p.asked.Add(float64(n * max(1, to-from)))
	}
}
