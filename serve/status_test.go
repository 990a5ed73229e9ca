package serve

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/serve/status"
)

func TestStatusOfAnAPI(t *testing.T) {
	h := newHandler(&fakeReader{states: stored()}, nil)
	do(t, h, "POST", queryPath, good)
	do(t, h, "POST", queryPath, good)
	do(t, h, "POST", queryPath, `{}`)
	want := `{"at":1532520000000,"questions":[{"outcome":"answered","count":2},{"outcome":"refused","count":1}]}` + "\n"
	if w := do(t, h, "GET", "/v1/status", ""); w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("%d %s, want %s", w.Code, w.Body, want)
	}
}

// The definitions in use at the time of the request are served as they were written.
func TestDefinitions(t *testing.T) {
	r := registry()
	h := newHandler(&fakeReader{}, func(c *setup) { c.Registry = func() *features.Registry { return r } })
	wants := func(want string) {
		t.Helper()
		if w := do(t, h, "GET", "/v1/definitions", ""); w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("%d %s\nwant %s", w.Code, w.Body, want)
		}
	}
	wants(`{"version":"","definitions":[],"schemas":[]}`)
	r = registry()
	r.Files = features.Files{
		Definitions: []features.File{{Path: "a.yaml", Text: "# <one>\n"}, {Path: "b.yaml"}},
		Schemas:     []features.File{{Path: "a.avsc", Text: `"string"`}},
	}
	wants(`{"version":"","definitions":[{"path":"a.yaml","text":"# <one>\n"},{"path":"b.yaml","text":""}],"schemas":[{"path":"a.avsc","text":"\"string\""}]}`)
}

func TestStatusOfAProcessor(t *testing.T) {
	metrics := prometheus.NewRegistry()
	factory := promauto.With(metrics)
	counter := func(name string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name}, labels)
	}
	factory.NewGauge(prometheus.GaugeOpts{Name: "weir_assigned_partitions"}).Set(2)
	factory.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_lag_records"}, []string{"topic", "partition"}).WithLabelValues("payments", "1").Set(12)
	for name, value := range map[string]float64{"weir_open_transaction_records": 5, "weir_open_transaction_age_seconds": 61.5} {
		factory.NewGaugeVec(prometheus.GaugeOpts{Name: name}, []string{"topic", "partition"}).WithLabelValues("payments", "1").Set(value)
	}
	events := counter("weir_events_total", "stream", "outcome")
	events.WithLabelValues("payment", "applied").Add(7)
	events.WithLabelValues("", "unmatched").Add(1)
	counter("weir_rewinds_total", "topic").WithLabelValues("payments").Add(0)
	counter("weir_dead_letters_total", "stream", "reason").WithLabelValues("payment", "late").Add(3)
	freshness := factory.NewHistogram(prometheus.HistogramOpts{Name: "weir_freshness_seconds", Buckets: []float64{0.001, 2}})
	for _, seconds := range []float64{0.0005, 1, 5} {
		freshness.Observe(seconds)
	}
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Gatherer = metrics
		c.DeadLetters = func() []status.DeadLetter {
			return []status.DeadLetter{{Topic: "payments", Partition: 1, Offset: 40, Timestamp: 1532496076032, Stream: "payment", Reason: "late", Path: "at"}}
		}
		c.Backfills = func() []status.Backfill {
			return []status.Backfill{
				{Features: []string{"count"}, Topic: "logins"},
				{Features: []string{"count", "sum"}, Topic: "payments", Applied: 250, Total: 1000, Share: 0.25, Rate: 12.5, SecondsLeft: 60,
					Files: &status.Files{Count: 2, Applied: 30, Total: 40}},
			}
		}
	})
	want := `{"at":1532520000000,"processor":{"partitions":2,` +
		`"events":[{"stream":"payment","outcome":"applied","count":7},{"outcome":"unmatched","count":1}],` +
		`"lag":[{"topic":"payments","partition":"1","count":12}],"open":[{"topic":"payments","partition":"1","count":5}],` +
		`"open_age":[{"topic":"payments","partition":"1","count":61.5}],"rewinds":[{"topic":"payments","count":0}],"lost":[],` +
		`"dead_letters":[{"stream":"payment","reason":"late","count":3}],` +
		`"freshness":{"count":3,"buckets":[{"seconds":0.001,"count":1},{"seconds":2,"count":2}]},` +
		`"last_dead_letters":[{"topic":"payments","partition":1,"offset":40,"timestamp":1532496076032,"stream":"payment","reason":"late","path":"at"}]` +
		`},"backfills":[{"features":["count"],"topic":"logins","applied":0,"total":0,"share":0},` +
		`{"features":["count","sum"],"topic":"payments","applied":250,"total":1000,"share":0.25,"rate":12.5,"seconds_left":60,"files":{"count":2,"applied":30,"total":40}}],"questions":[]}` + "\n"
	w := do(t, h, "GET", "/v1/status", "")
	if diff := cmp.Diff(want, w.Body.String()); w.Code != http.StatusOK || diff != "" {
		t.Errorf("%d (-want +got):\n%s", w.Code, diff)
	}
}

func TestStatusCannotBeGathered(t *testing.T) {
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("secret") })
	})
	w := do(t, h, "GET", "/v1/status", "")
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("got %d %s, want 500 without the cause", w.Code, w.Body)
	}
}
