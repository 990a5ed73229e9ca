package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/state"
)

const good = `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}]}`

func TestStoreFailures(t *testing.T) {
	var log bytes.Buffer
	for _, test := range []struct {
		name, body string
		reader     *fakeReader
		want       string
	}{
		{
			"a read fails", good, &fakeReader{err: errors.New("dial tcp 10.0.0.1:6379: refused")},
			`{"error":{"code":"store_unavailable","message":"the store cannot be read; the server's log has the details"}}`,
		},
		{
			"the clock fails", strings.Replace(good, "{", `{"at": 1500000000000, `, 1), &fakeReader{err: errors.New("dial tcp 10.0.0.1:6379: refused")},
			`{"error":{"code":"store_unavailable","message":"the store cannot be read; the server's log has the details"}}`,
		},
		{
			"the store is not asked, as it has not answered others", good, &fakeReader{err: fmt.Errorf("%w: %w", state.ErrUnavailable, context.DeadlineExceeded)},
			`{"error":{"code":"store_unavailable","message":"the store has not answered lately"}}`,
		},
		{
			"a read takes too long", good, &fakeReader{read: func(ctx context.Context, _ []state.Read) ([]state.WindowState, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}},
			`{"error":{"code":"store_unavailable","message":"the store did not answer within 1ms"}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			log.Reset()
			// In a synctest bubble, time passes only while the handler waits for the store.
			synctest.Test(t, func(t *testing.T) {
				h := newHandler(test.reader, func(c *setup) {
					c.Limits.Timeout = time.Millisecond
					c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				w := do(t, h, "POST", queryPath, test.body)
				if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
					t.Errorf("status %d, Retry-After %q; want 503 and 1", w.Code, w.Header().Get("Retry-After"))
				}
				if diff := cmp.Diff(test.want+"\n", w.Body.String()); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				do(t, h, "POST", queryPath, test.body)
				if n := strings.Count(log.String(), "the store cannot be read"); n != 1 {
					t.Errorf("logged %d times within a second, want once:\n%s", n, &log)
				}
			})
		})
	}
}

func TestDefectsAreNotRevealed(t *testing.T) {
	const want = `{"error":{"code":"internal","message":"the question could not be answered because of a defect; the server's log has the details"}}` + "\n"
	for name, read := range map[string]func(context.Context, []state.Read) ([]state.WindowState, error){
		"a panic":                func(context.Context, []state.Read) ([]state.WindowState, error) { panic("secret") },
		"a window state too few": func(context.Context, []state.Read) ([]state.WindowState, error) { return nil, nil },
		"a panic in a function": func(context.Context, []state.Read) ([]state.WindowState, error) {
			return make([]state.WindowState, 1), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h := newHandler(&fakeReader{read: read}, func(c *setup) {
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				r := registry()
				f, _ := r.Feature("device_tx_7d")
				f.Function = panics{f.Function}
				c.Registry = func() *features.Registry { return r }
			})
			w := do(t, h, "POST", queryPath, good)
			if w.Code != http.StatusInternalServerError || w.Body.String() != want {
				t.Errorf("got %d %s, want 500 %s", w.Code, w.Body, want)
			}
			if !strings.Contains(log.String(), "failed") {
				t.Errorf("the panic was not logged")
			}
		})
	}
}

type panics struct{ aggregate.Function }

func (panics) Merge(aggregate.Call, []state.WindowState) aggregate.Result { panic("secret") }

// The oldest moment of a question is relative to the wall clock or, when history is replayed, to the records' clock.
func TestOldestMoment(t *testing.T) {
	now := noon.UnixMilli()
	week, year := (7 * day).Milliseconds(), (365 * day).Milliseconds()
	for _, test := range []struct {
		name      string
		clock, at int64
		oldest    int64 // 0: answerable
	}{
		{"the present", 0, now, 0},
		{"just kept", now, now - week, 0},
		{"just not", now, now - week - 1, now - week},
		{"of an empty store", 0, now - week - 1, now - week},
		{"records of last year", now - year, now - year - week, 0},
		{"records of last year, too old", now - year, now - year - week - 1, now - year - week},
		{"records from the future keep no less", now + year, now - week, 0},
		{"records from the future", now + year, now - week - 1, now - week},
		{"after the records", now - year, now - year/2, 0},
		{"ahead", now, now + year, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader := &fakeReader{clock: test.clock, states: stored()}
			q := newQuestion(noon, newBudgets(1<<20))
			q.asked.at = test.at
			q.asked.features = []*preparedFeature{newIndex(registry(), newMetrics(nil).asked).features["device_tx_7d"]}
			f := &q.found
			if err := f.findOldest(t.Context(), &q.asked, reader); err != nil {
				t.Fatal(err)
			}
			want := test.oldest
			if want == 0 {
				want = answerable
			}
			if f.oldest[0] != want {
				t.Errorf("the oldest moment is %d, want %d", f.oldest[0], want)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	pass := func(context.Context) error { return nil }
	for _, test := range []struct {
		name   string
		checks []status.Check
		status int
		want   string
	}{
		{"no checks", nil, 200, `{"ready":true,"checks":[]}`},
		{"all pass", []status.Check{{Name: "redis", Check: pass}, {Name: "kafka", Check: pass}}, 200, `{"ready":true,"checks":[{"name":"redis","ready":true},{"name":"kafka","ready":true}]}`},
		{
			"one fails, one panics, one hangs",
			[]status.Check{
				{Name: "redis", Check: func(context.Context) error { return errors.New("connection refused") }},
				{Name: "kafka", Check: pass},
				{Name: "disk", Check: func(context.Context) error { panic("no disk") }},
				{Name: "lag", Check: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			},
			503, `{"ready":false,"checks":[{"name":"redis","ready":false,"error":"connection refused"},{"name":"kafka","ready":true},` +
				`{"name":"disk","ready":false,"error":"panic: no disk"},{"name":"lag","ready":false,"error":"context deadline exceeded"}]}`,
		},
		{
			"one hangs, whatever the context says", []status.Check{{Name: "redis", Check: func(context.Context) error { select {} }}},
			503, `{"ready":false,"checks":[{"name":"redis","ready":false,"error":"it does not answer in time"}]}`,
		},
		{
			"one of several masters hangs", []status.Check{{Name: "redis", Check: func(context.Context) error { return fmt.Errorf("look: %w", halfDown{}) }}},
			200, `{"ready":true,"checks":[{"name":"redis","ready":true,"warning":"look: one of three is down"}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHandler(&fakeReader{}, func(c *setup) { c.Checks, c.Limits.Timeout = test.checks, 300*time.Millisecond })
			w := do(t, h, "GET", "/readyz", "")
			if w.Code != test.status || w.Body.String() != test.want+"\n" {
				t.Errorf("%d %s\nwant %d %s", w.Code, w.Body, test.status, test.want)
			}
			if w := do(t, h, "GET", "/healthz", ""); w.Code != 200 || w.Body.String() != "{\"status\":\"ok\"}\n" {
				t.Errorf("/healthz: got %d %s, want 200", w.Code, w.Body)
			}
		})
	}
}

func TestCatalogue(t *testing.T) {
	w := do(t, newHandler(&fakeReader{}, nil), "GET", "/v1/features", "")
	want, err := os.ReadFile("testdata/catalogue.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.ReplaceAll(w.Body.String(), `},{"name":"`, "},\n{\"name\":\"")); diff != "" {
		t.Errorf("catalogue (-want +got):\n%s", diff)
	}
}

// Definitions may be replaced between two questions.
func TestRegistryIsReplaced(t *testing.T) {
	registries := []*features.Registry{{}, registry()}
	h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
		c.Registry = func() *features.Registry { return registries[0] }
	})
	if w := do(t, h, "POST", queryPath, good); w.Code != http.StatusNotFound {
		t.Errorf("with the old registry: status %d, want 404", w.Code)
	}
	registries = registries[1:]
	if w := do(t, h, "POST", queryPath, good); w.Code != http.StatusOK {
		t.Errorf("with the new registry: status %d, want 200", w.Code)
	}
}

func TestMetrics(t *testing.T) {
	metrics := prometheus.NewRegistry()
	reader := &fakeReader{states: stored()}
	h := newHandler(reader, func(c *setup) { c.Registerer, c.Gatherer = metrics, metrics })
	do(t, h, "POST", queryPath, `{"features": ["device_tx_7d", "device_avg_7d"], "entities": [{"device_id": "d1"}, {"device_id": "d2"}]}`)
	do(t, h, "POST", queryPath, `{}`)
	reader.err = errors.New("down")
	do(t, h, "POST", queryPath, good)
	reader.read = func(context.Context, []state.Read) ([]state.WindowState, error) { panic("defect") }
	do(t, h, "POST", queryPath, good)

	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP weir_question_features_total Values asked for, by feature.
# TYPE weir_question_features_total counter
weir_question_features_total{feature="device_amount_7d"} 0
weir_question_features_total{feature="device_avg_7d"} 2
weir_question_features_total{feature="device_cards_7d"} 0
weir_question_features_total{feature="device_max_name_7d"} 0
weir_question_features_total{feature="device_tx_7d"} 4
weir_question_features_total{feature="device_users_7d"} 0
weir_question_features_total{feature="typed_7d"} 0
weir_question_features_total{feature="user_last"} 0
# HELP weir_questions_in_flight Questions that are being answered.
# TYPE weir_questions_in_flight gauge
weir_questions_in_flight 0
`), "weir_question_features_total", "weir_questions_in_flight"); err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, outcome := range []string{answered, refused, unavailable, failed} {
		if want := `weir_question_duration_seconds_count{outcome="` + outcome + `"} 1` + "\n"; !strings.Contains(w.Body.String(), want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if want := "weir_question_values_sum 6\n"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("/metrics lacks %s", want)
	}
}

func TestUnreadableBodies(t *testing.T) {
	for _, test := range []struct {
		name, encoding string
		body           io.Reader
		status         int
		want           string
	}{
		{
			"compressed", "gzip", strings.NewReader("\x1f\x8b"), 415,
			`{"error":{"code":"unsupported_encoding","message":"the body must not be compressed; its Content-Encoding is \"gzip\""}}`,
		},
		{
			"broken off", "identity", iotest.ErrReader(errors.New("connection reset")), 400,
			`{"error":{"code":"unreadable_body","message":"the body could not be read: connection reset"}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest("POST", queryPath, test.body)
			r.Header.Set("Content-Encoding", test.encoding)
			w := httptest.NewRecorder()
			newHandler(&fakeReader{}, nil).ServeHTTP(w, r)
			if w.Code != test.status || w.Body.String() != test.want+"\n" {
				t.Errorf("%d %s\nwant %d %s", w.Code, w.Body, test.status, test.want)
			}
		})
	}
}

// halfDown is the error of a store that still works in part.
type halfDown struct{}

func (halfDown) Error() string  { return "one of three is down" }
func (halfDown) Degraded() bool { return true }

// A probe with a timeout of a second must see the reason.
func TestReadinessAnswersWithinHalfASecond(t *testing.T) {
	hangs := func(ctx context.Context) error {
		if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > 500*time.Millisecond {
			t.Errorf("a check has the deadline %v, want one within 500ms", until)
		}
		<-ctx.Done()
		return ctx.Err()
	}
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Checks = []status.Check{{Name: "redis", Check: hangs}, {Name: "processor", Check: hangs}}
	})
	if w := do(t, h, "GET", "/readyz", ""); w.Code != 503 {
		t.Errorf("status %d, want 503", w.Code)
	}
}
