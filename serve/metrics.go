package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/metric"
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
	maker := metric.For(r)
	return &metrics{
		seconds: maker.Histograms("weir_question_duration_seconds", "Time from a question's arrival to its answer.",
			// To 1.6 s. An alert fires at 50 ms: between bounds a quantile is only guessed.
			append(prometheus.ExponentialBuckets(0.0001, 2, 9), prometheus.ExponentialBuckets(0.05, 2, 6)...), "outcome"),
		values: maker.Histogram("weir_question_values", "Values that a question asks for: features, or their members, times entities.",
			prometheus.ExponentialBuckets(1, 4, 8)),
		staleness: maker.Histogram("weir_question_staleness_seconds",
			"How old at the most the state was that a question read from a replica; those that read from masters alone are not counted.",
			prometheus.ExponentialBuckets(0.025, 2, 10)), // to 12.8 s
		asked:    maker.Counters("weir_question_features_total", "Values asked for, by feature.", "feature"),
		inFlight: maker.Gauge("weir_questions_in_flight", "Questions that are being answered."),
		unauthorized: maker.Counters("weir_requests_refused_total",
			"Requests without the required token or certificate, or to an unknown host, by the error's code.", "code"),
		damaged: maker.Counter("weir_damaged_answers_total", "Values that answers lack because the state of their entity is damaged."),
		unavailable: maker.Counter("weir_unavailable_answers_total",
			"Values that answers lack because the server of the store that holds their entity did not answer, or because a table cannot."),
		panics: maker.Counter("weir_panics_total", "Requests that met a defect; the log has the stack of each."),
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
