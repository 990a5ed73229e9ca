package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/internal/credentials"
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

// A connection too many waits until another one is closed.
func TestConnectionsAreBounded(t *testing.T) {
	asked := make(chan string, 3)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path })
	s, err := start("127.0.0.1:0", handler, nil, slog.New(slog.DiscardHandler), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Shutdown(t.Context()) }()
	ask := func(path string) net.Conn {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := ask("/first")
	if got := <-asked; got != "/first" {
		t.Fatalf("%s was asked", got)
	}
	second := ask("/second")
	defer second.Close()
	<-asked
	third := ask("/third")
	defer third.Close()
	if _, err := fmt.Fprint(second, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-asked; got != "/again" {
		t.Errorf("with two connections open, %s was asked", got)
	}
	first.Close()
	if got := <-asked; got != "/third" {
		t.Errorf("once one is closed, %s was asked", got)
	}
}

// Of several clients that ask as much as they can, none gets more than another, and one that comes later gets in.
func TestGateIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, clients := rapid.IntRange(1, 600).Draw(t, "most"), rapid.IntRange(1, 8).Draw(t, "clients")
		g, held := newGate(most), map[string]int{}
		for refused := 0; refused < clients; {
			refused = 0
			for c := range clients {
				name := strconv.Itoa(c + 1)
				if admitted, _ := g.enter(name); admitted {
					held[name]++
				} else {
					refused++
				}
			}
		}
		least, greatest := most, 0
		for c := range clients {
			n := held[strconv.Itoa(c+1)]
			least, greatest = min(least, n), max(greatest, n)
		}
		if greatest-least > 1 {
			t.Errorf("of %d places, clients hold from %d to %d", most, least, greatest)
		}
		if admitted, _ := g.enter("late"); !admitted && most > 4*clients {
			t.Errorf("with %d clients and %d places there is none for one more", clients, most)
		} else if admitted {
			g.leave("late")
		}
		for name, n := range held {
			for range n {
				g.leave(name)
			}
		}
		if g.total != 0 || len(g.by) != 0 {
			t.Errorf("after all left: %d of %v", g.total, g.by)
		}
	})
}

// A client with the weakest token that opens questions and does not finish them keeps nobody from being answered.
func TestUnfinishedBodiesHinderNobody(t *testing.T) {
	clients := map[string]*credentials.Client{"weak": clientOf(t, "weak service:login_risk"), "engine": clientOf(t, "engine query")}
	h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
		c.Limits.Concurrent = 5
		c.Access.Identify = func(_ context.Context, token string) (*credentials.Client, error) { return clients[token], nil }
	})
	ask := func(token string, body io.Reader) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("POST", queryPath, body), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+token)
		h.ServeHTTP(w, r)
		return w
	}
	var unfinished sync.WaitGroup
	var ends []*io.PipeWriter
	outcomes := make(chan int, 100)
	for range cap(outcomes) {
		body, end := io.Pipe()
		ends = append(ends, end)
		unfinished.Go(func() { outcomes <- ask("weak", body).Code })
	}
	for refused := 0; refused < cap(outcomes)-16; refused++ { // the others, four fifths of 4·5, wait for their bodies
		if code := <-outcomes; code != http.StatusServiceUnavailable {
			t.Errorf("an unfinished question beyond the client's share: status %d, want 503", code)
		}
	}
	if w := ask("engine", strings.NewReader(good)); w.Code != http.StatusOK {
		t.Errorf("another client: %d %s", w.Code, w.Body)
	}
	want := `{"error":{"code":"overloaded","message":"as many questions of this client are under way as leave room for those of others; ask again in a second, or ask another server"}}`
	if w := ask("weak", strings.NewReader(good)); strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("one more of the client:\ngot  %s\nwant %s", w.Body, want)
	}
	for _, end := range ends {
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
	}
	unfinished.Wait()
	if w := ask("weak", strings.NewReader(`{"features":["user_last"],"entities":[{"user_id":"u1"}]}`)); w.Code == http.StatusServiceUnavailable {
		t.Errorf("after the unfinished ones ended: %d %s", w.Code, w.Body)
	}
}
