package serve

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/state"
)

// One question too many is refused, and accepted once another one is answered.
func TestOverload(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	reader := &fakeReader{read: func(context.Context, []state.Read) ([]state.WindowState, error) {
		arrived <- struct{}{}
		<-release
		return make([]state.WindowState, 1), nil
	}}
	metrics := prometheus.NewRegistry()
	h := newHandler(reader, func(c *setup) { c.Limits.Concurrent, c.Registerer = 1, metrics })
	ask := func() *httptest.ResponseRecorder { return do(t, h, "POST", queryPath, good) }
	var first sync.WaitGroup
	first.Go(func() {
		if w := ask(); w.Code != http.StatusOK {
			t.Errorf("the first question: %d %s, want 200", w.Code, w.Body)
		}
	})
	<-arrived
	for range 2 {
		w := ask()
		want := `{"error":{"code":"overloaded","message":"as many questions as this server answers at once (1) are under way; ask again in a second, or ask another server"}}`
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("status %d, Retry-After %q\n%s\nwant 503, 1\n%s", w.Code, w.Header().Get("Retry-After"), w.Body, want)
		}
	}
	if w := do(t, h, "GET", "/healthz", ""); w.Code != http.StatusOK {
		t.Errorf("a probe was answered with %d, want 200", w.Code)
	}
	release <- struct{}{}
	first.Wait()
	first.Go(func() { <-arrived; release <- struct{}{} })
	if w := ask(); w.Code != http.StatusOK {
		t.Errorf("after the first question was answered: %d %s, want 200", w.Code, w.Body)
	}
	first.Wait()
	if n := testutil.CollectAndCount(metrics, "weir_question_duration_seconds"); n != 2 {
		t.Errorf("%d outcomes, want answered and overloaded", n)
	}
}

// An answer may take as long as Limits.Timeout allows, even if the server's own timeout is shorter.
func TestLongTimeout(t *testing.T) {
	var deadline time.Time
	h := newHandler(&fakeReader{}, func(c *setup) { c.Limits.Timeout = 5 * time.Minute })
	w := &deadlined{ResponseRecorder: httptest.NewRecorder(), at: &deadline}
	h.ServeHTTP(w, httptest.NewRequest("POST", queryPath, strings.NewReader(good)))
	if left := time.Until(deadline); w.Code != http.StatusOK || left < 5*time.Minute || left > 6*time.Minute {
		t.Errorf("status %d, %v left to write the answer; want 200 and between 5m and 6m", w.Code, left)
	}
}

type deadlined struct {
	*httptest.ResponseRecorder
	at *time.Time
}

func (d *deadlined) SetWriteDeadline(at time.Time) error { *d.at = at; return nil }

func TestPanicsAreCounted(t *testing.T) {
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	reader := &fakeReader{read: func(context.Context, []state.Read) ([]state.WindowState, error) { panic("a defect") }}
	h := newHandler(reader, func(c *setup) {
		c.Registerer, c.Logger = metrics, slog.New(slog.NewTextHandler(&log, nil))
	})
	w := do(t, h, "POST", queryPath, good)
	if !strings.HasPrefix(w.Body.String(), `{"error":{"code":"internal",`) || w.Code != http.StatusInternalServerError {
		t.Errorf("got %d %s, want 500 and the code internal", w.Code, w.Body)
	}
	if text := log.String(); !strings.Contains(text, "a defect") || !strings.Contains(text, "overload_test.go") {
		t.Errorf("the log does not contain the panic with its stack:\n%s", text)
	}
	want := "# HELP weir_panics_total Requests that met a defect; the log has the stack of each.\n# TYPE weir_panics_total counter\nweir_panics_total 1\n"
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "weir_panics_total"); err != nil {
		t.Error(err)
	}
	// The question's slot is free again.
	if n := len(reader.calls); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}

// A server refuses headers that are too large, and waits for headers only some seconds.
func TestHeadersAreBounded(t *testing.T) {
	s, err := Start("127.0.0.1:0", newHandler(&fakeReader{}, nil), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Shutdown(t.Context()) }()
	r, err := http.NewRequest("GET", "http://"+s.Addr().String()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Long", strings.Repeat("x", 100<<10))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d, want 431", answer.StatusCode)
	}
	for name, limit := range map[string]time.Duration{"header": s.http.ReadHeaderTimeout, "reading": s.http.ReadTimeout,
		"writing": s.http.WriteTimeout, "idle": s.http.IdleTimeout} {
		if limit <= 0 || limit > 2*time.Minute {
			t.Errorf("%s is %v, want at most 2m", name, limit)
		}
	}
}
