package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
)

// patterns are definitions of 37 KB, each of whose filters would need megabytes.
func patterns() string {
	var b strings.Builder
	b.WriteString("features:\n")
	for i := range 480 {
		fmt.Fprintf(&b, "  f%d: {function: count, window: 1h, stream: pay, by: user, where: 'user matches \"^\\\\pL{120}%d$\"'}\n", i, i)
	}
	return b.String()
}

// A draft cannot use up the memory of a process.
func TestPreviewOfPatternsIsBounded(t *testing.T) {
	h := withTools(tools.Config{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := do(t, h, "POST", "/v1/preview", draft("new.yaml", patterns()))
	runtime.ReadMemStats(&after)
	if want := "have more than 2097152 bytes and steps of patterns together"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %.300s\nwant it to contain %s", w.Body, want)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 250 {
		t.Errorf("checking a draft took %d MiB", took)
	}
}

// A draft that takes long to check ends, and at once when its author hangs up.
func TestPreviewOfMisspeltNamesEnds(t *testing.T) {
	var b strings.Builder
	b.WriteString("features:\n")
	for i := range 14_000 {
		fmt.Fprintf(&b, "  a_feature_%d: {expr: a_faeture_%d + 1}\n", i, i)
	}
	body := draft("new.yaml", b.String())
	began := time.Now()
	w := do(t, withTools(tools.Config{}), "POST", "/v1/preview", body)
	whole := time.Since(began)
	if w.Code != http.StatusRequestEntityTooLarge || whole > time.Minute {
		t.Errorf("status %d after %v: %.300s", w.Code, whole, w.Body)
	}
	if want := "the definitions take more than 5s to check; check them with weir validate"; !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %.300s\nwant it to contain %s", w.Body, want)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	r, w := httptest.NewRequestWithContext(ctx, "POST", "/v1/preview", strings.NewReader(body)), httptest.NewRecorder()
	r.Header.Set("Content-Type", "application/json")
	began = time.Now()
	withTools(tools.Config{}).ServeHTTP(w, r)
	if took := time.Since(began); w.Code != 499 || took >= whole {
		t.Errorf("after the author hung up: status %d after %v, and %v if he does not", w.Code, took, whole)
	}
}

// A draft reads the topics of the definitions in use only: the process may read those of others.
func TestPreviewReadsNoForeignTopic(t *testing.T) {
	h := withTools(tools.Config{Preview: func(context.Context, *features.Registry, []*features.Feature, time.Time) (*preview.Report, error) {
		t.Error("a foreign topic is read")
		return &preview.Report{}, nil
	}})
	for _, topic := range []string{"salaries", "__consumer_offsets", "weir.dead-letters", "payments2"} {
		w := do(t, h, "POST", "/v1/preview", draft("new.yaml", "streams: {s: {topic: "+topic+", timestamp: at, fields: {who: string}}}\nfeatures: {n: 'COUNT(1h, s, who)'}"))
		if want := `"no_preview":"no definition in use reads the topic ` + topic + `; weir preview`; !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %s\nwant it to contain %s", w.Body, want)
		}
	}
}

// The page of another site cannot use a browser to ask a server that wants no token.
func TestOtherSitesAreRefused(t *testing.T) {
	h := withTools(tools.Config{})
	ask := func(path, body string, headers ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("POST", path, strings.NewReader(body)), httptest.NewRecorder()
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		h.ServeHTTP(w, r)
		return w
	}
	const other = `{"error":{"code":"forbidden","message":"the page of another site sent this request; only pages of this server may"}}`
	for _, site := range []string{"cross-site", "same-site"} {
		for _, path := range []string{"/v1/preview", queryPath, "/get-online-features"} {
			if w := ask(path, good, "Sec-Fetch-Site", site, "Content-Type", "application/json"); w.Code != http.StatusForbidden || strings.TrimSpace(w.Body.String()) != other {
				t.Errorf("%s to %s: status %d: %s", site, path, w.Code, w.Body)
			}
		}
	}
	if w := ask("/v1/preview", draft("a.yaml", ""), "Origin", "https://evil.example.com", "Content-Type", "application/json"); w.Code != http.StatusForbidden {
		t.Errorf("the origin of another site: status %d", w.Code)
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"} {
		w := ask("/v1/preview", draft("a.yaml", ""), "Content-Type", kind)
		if want := fmt.Sprintf("the body must have the Content-Type application/json, not \\\"%s\\\"", kind); w.Code != http.StatusUnsupportedMediaType || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: status %d: %s", kind, w.Code, w.Body)
		}
	}
	for _, site := range []string{"same-origin", "none"} {
		if w := ask("/v1/preview", draft("a.yaml", ""), "Sec-Fetch-Site", site, "Content-Type", "application/json; charset=utf-8"); w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", site, w.Code, w.Body)
		}
	}
}

// Whoever reads records or entities that clients do not know leaves a line that says who read what.
func TestReadsOfOperatorsAreLogged(t *testing.T) {
	var log strings.Builder
	h := newHandler(&fakeReader{}, func(c *setup) {
		as(clientOf(t, "anna author operator"))(&c.Access)
		c.Logger = slog.New(slog.NewJSONHandler(&log, nil))
		c.Tools = tools.Config{
			DeadLetters: func(context.Context, string, int) ([]tools.DeadLetter, error) { return nil, nil },
			LongestKeys: func(context.Context, int, time.Duration) (state.LongKeys, error) { return state.LongKeys{}, nil },
		}
	})
	for _, c := range []struct{ method, target, body, want string }{
		{"GET", "/v1/dead-letters?reason=late&limit=7", "", `"path":"/v1/dead-letters","reason":"late","limit":7`},
		{"GET", "/v1/greatest-keys", "", `"path":"/v1/greatest-keys","limit":20`},
		{"GET", "/v1/busiest", "", `"path":"/v1/busiest"`},
		{"POST", "/v1/preview", draft("new.yaml", "features: {n_1h: 'COUNT(1h, x, user)'}"), `"path":"/v1/preview","file":"new.yaml","minutes":10,"features":["n_1h"]`},
	} {
		log.Reset()
		askWithToken(t, h, c.method, c.target, c.body)
		var line struct{ Msg, Client, From string }
		if err := json.Unmarshal([]byte(log.String()), &line); err != nil || line.Msg != "an operator reads" || line.Client != "anna" || line.From == "" || !strings.Contains(log.String(), c.want) {
			t.Errorf("%s: the log is %q (%v), want one line with %s", c.target, log.String(), err, c.want)
		}
	}
}

// Without credentials /readyz says whether the process is ready, and nothing of its paths, topics and definitions.
func TestReadinessTellsStrangersNothing(t *testing.T) {
	clients := map[string]string{"anna": "anna operator", "engine": "engine query"}
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Access.Identify = func(_ context.Context, token string) (*credentials.Client, error) {
			if line, known := clients[token]; known {
				return clientOf(t, line), nil
			}
			return nil, errors.New("unknown")
		}
		c.Checks = []status.Check{
			{Name: "payments/3", Check: func(context.Context) error { return errors.New("the log of payments was made again") }},
			{Name: "redis", Check: func(context.Context) error { return nil }},
		}
		c.Definitions = func() status.Definitions {
			return status.Definitions{Version: "v1", Reload: &status.Reload{Error: "/etc/weir/features/secret.yaml:1:1: bad"}}
		}
	})
	ask := func(token string) string {
		r, w := httptest.NewRequest("GET", "/readyz", nil), httptest.NewRecorder()
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if h.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d, want 503", token, w.Code)
		}
		return strings.TrimSpace(w.Body.String())
	}
	const withheld = `{"ready":false,"checks":[{"name":"check","ready":false,"error":"ask with a token or a certificate of the scope operator, or see the log"},{"name":"check","ready":true}]}`
	for _, token := range []string{"", "wrong", "engine"} {
		if got := ask(token); got != withheld {
			t.Errorf("%q:\ngot  %s\nwant %s", token, got, withheld)
		}
	}
	if got := ask("anna"); !strings.Contains(got, "payments was made again") || !strings.Contains(got, "secret.yaml") {
		t.Errorf("an operator sees %s", got)
	}
}

// No cache between the server and a client keeps what an answer says about a person, nor a refusal.
func TestAnswersAreNotCached(t *testing.T) {
	h := newHandler(&fakeReader{states: stored()}, nil)
	for _, c := range []struct{ method, target, body string }{
		{"POST", queryPath, good}, {"GET", "/v1/features/device_tx_7d?device_id=d1", ""}, {"GET", "/v1/timeline/device_tx_7d?device_id=d1", ""},
		{"GET", "/v1/busiest", ""}, {"POST", "/get-online-features", `{"features":["v:device_tx_7d"],"entities":{"device_id":["d1"]}}`}, {"POST", queryPath, "{"},
	} {
		if w := do(t, h, c.method, c.target, c.body); w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: Cache-Control %q, want no-store", c.method, c.target, w.Header().Get("Cache-Control"))
		}
	}
}
