package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/browser"
)

// between starts a server that proxies to another one what answer does not answer.
func between(t *testing.T, base string, answer func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	behind, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// If the next entity cannot be read, nothing of the one before is shown under its address, and its name is read aloud.
func TestPageOfTheNextEntityFails(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, broker := pageServer(t)
	writePayments(t, broker, "12.50")
	var away atomic.Bool
	base := between(t, behind, func(w http.ResponseWriter, r *http.Request) bool {
		if away.Load() && r.URL.Path == "/v1/features" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error": {"code": "unavailable", "message": "try again later"}}`))
			return true
		}
		return false
	})
	counts(t, tab, base, 1)
	tab.Run(t, chromedp.Navigate(base+"/#/user_id/u7"))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "12.5")
	away.Store(true)
	tab.Run(t, chromedp.SendKeys("#find-id", "u8"+kb.Enter))
	shows(t, tab, "#trouble .problem", "try again later")
	holds(t, tab, `document.activeElement.id === 'entity-title' && document.activeElement.textContent === 'user_id u8'`)
	holds(t, tab, `document.querySelector('#entity-parts').childElementCount === 0 && document.querySelector('#entity-said').textContent === ''`)
}

// A look at the operations that is under way when the view is left is the last one.
func TestPageStopsWatching(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, _ := pageServer(t)
	held := make(chan struct{})
	base := between(t, behind, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v1/status" {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		return false
	})
	tab.Run(t, chromedp.Navigate(base+"/#/features"), chromedp.Evaluate(`
		const send = fetch;
		window.began = [], window.ended = [];
		window.fetch = async (path, ...options) => {
			began.push(path);
			const response = await send(path, ...options);
			ended.push(path);
			return response;
		}`, nil))
	shows(t, tab, "#catalogue", "user_tx_1h")
	tab.Run(t, chromedp.SendKeys("nav [data-view=operations]", kb.Enter))
	holds(t, tab, `began.includes('v1/status')`)
	tab.Run(t, chromedp.SendKeys("nav [data-view=start]", kb.Enter))
	shows(t, tab, "#services", "payment_risk")
	close(held)
	holds(t, tab, `ended.includes('v1/status')`)
	tab.Run(t, chromedp.SendKeys("nav [data-view=features]", kb.Enter))
	holds(t, tab, `!document.querySelector('#features').hidden && ended.filter(path => path === 'v1/features').length > 2`)
	if began := evaluate[[]string](t, tab, `began`); strings.Contains(strings.Join(began, " "), "readyz") {
		t.Errorf("the page watches on after its view was left: it has asked for %v", began)
	}
}

// No rate is negative after a restart, and a problem that lasts is announced once, not at each look.
func TestPageOfOperationsRestarts(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, _ := pageServer(t)
	var looks, questions atomic.Int64
	var away atomic.Bool
	questions.Store(5000)
	base := between(t, behind, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/status" {
			return false
		}
		look := looks.Add(1)
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error": {"code": "unavailable", "message": "try again later"}}`))
			return true
		}
		fmt.Fprintf(w, `{"at": %d, "questions": [{"outcome": "answered", "count": %d}]}`, 1532496076000+1000*look, questions.Load())
		return true
	})
	more := func() {
		t.Helper()
		before := looks.Load()
		testkit.Eventually(t, patience, "two more looks", func() (bool, string) { return looks.Load() > before+2, "" })
	}
	tab.Run(t, chromedp.Navigate(base+"/#/operations"))
	shows(t, tab, "[data-figure=questions] .hint", "5,000 since the start")
	tab.Run(t, chromedp.Evaluate(`
		window.seen = [];
		new MutationObserver(() => seen.push(document.querySelector('[data-figure=questions] .value')?.textContent ?? ''))
			.observe(document.querySelector('#figures'), { childList: true })`, nil))
	questions.Store(7)
	more()
	if seen := evaluate[[]string](t, tab, `seen`); !slices.Contains(seen, "7") || strings.Contains(strings.Join(seen, " "), "-") {
		t.Errorf("the questions were %q, want 7 since the start and no negative rate", seen)
	}

	away.Store(true)
	shows(t, tab, "#live-details .problem", "try again later")
	tab.Run(t, chromedp.Evaluate(`document.querySelector('#live-details .problem').first = true`, nil))
	more()
	holds(t, tab, `document.querySelector('#live-details .problem').first === true`)
}

// A number with hundreds of zeros is written with an exponent.
func TestPageWritesExtremeNumbers(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, _ := pageServer(t)
	base := inFront(t, behind, map[string]string{"/v1/query": `{"at": 1532496076032, "results": [{"entity": {"user_id": "u7"}, "features": {
		"user_amount_1d": {"value": 1.8123e-217, "status": "PRESENT", "from": 0, "to": 1532496076032, "exact": true},
		"user_avg_amount_7d": {"value": -1.5e+300, "status": "PRESENT", "from": 0, "to": 1532496076032, "exact": true},
		"user_amount_part": {"value": 0.000125, "status": "PRESENT", "from": 0, "to": 1532496076032, "exact": true}}}]}`})
	tab.Run(t, chromedp.Navigate(base+"/#/ask?feature=user_amount_1d&feature=user_avg_amount_7d&feature=user_amount_part&entity=user_id%3Du7"))
	for feature, want := range map[string]string{"user_amount_1d": "1.81e-217", "user_avg_amount_7d": "-1.5e+300", "user_amount_part": "0.000125"} {
		shows(t, tab, "[data-feature="+feature+"] .value", want)
	}
	tab.Run(t, chromedp.SendKeys("[data-feature=user_amount_1d] button", kb.Enter))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "1.8123e-217")
	quiet(t, tab, base)
}

// A question of a URL that names something that is no longer defined is asked without it, and the page says so.
func TestPageNamesWhatIsGone(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, _ := pageServer(t)
	tab.Run(t, chromedp.Navigate(base+"/#/ask?service=old_service&feature=old_feature&feature=user_tx_1h&pending=old_stream&event=%7B%7D&entity=user_id%3Du7"))
	shows(t, tab, "[data-feature=user_tx_1h] .words", "no event")
	shows(t, tab, "#add-problem", `There is no feature "old_feature". There is no service "old_service". There is no stream "old_stream".`)
	tab.Run(t, chromedp.SendKeys("#key-user_id", kb.Enter))
	holds(t, tab, `document.querySelector('#add-problem').textContent === '' && !location.hash.includes('old_')`)
	quiet(t, tab, base)
}

// An error of a proxy says at least its status.
func TestPageShowsErrorsOfProxies(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, _ := pageServer(t)
	for body, want := range map[string]string{
		`{"message": "no route"}`: "the server answered 502 Bad Gateway", `null`: "the server answered 502 Bad Gateway",
		"<html>": "the server answered 502 Bad Gateway", `{"error": {"code": "unavailable", "message": "try again later"}}`: "try again later",
	} {
		tab.Run(t, chromedp.Navigate(between(t, behind, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/v1/features" {
				return false
			}
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(body))
			return true
		})))
		shows(t, tab, "#trouble .problem p", want)
	}
}

// Nothing covers a part of a number or of a text, and a long window does not make the page wider than the screen.
func TestPageOfAnEntityWithLongValues(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, _ := pageServer(t)
	feature := func(name, function, window, more string) string {
		return fmt.Sprintf(`{"name": %q, "function": %q, "window": %q, %s, "keys": [{"name": "user_id", "type": "string"}], "series": []}`, name, function, window, more)
	}
	answer := func(name, value string) string {
		return fmt.Sprintf(`%q: {"value": %s, "status": "PRESENT", "from": 1532496000000, "to": 1532496076032, "exact": true}`, name, value)
	}
	points := `{"at": 1532496076032, "points": [{"value": 1, "status": "PRESENT", "from": %d, "to": 1532496076032}]}`
	base := inFront(t, behind, map[string]string{
		"/v1/features": `{"services": [], "streams": [], "lists": [], "features": [` + feature("great", "sum", "30d", `"timeline": true`) + "," +
			feature("weekly", "sum", "calendar week tz America/Argentina/Buenos_Aires starts sunday", `"timeline": true`) + "," +
			feature("note", "last", "30d", `"timeline": false`) + "," + feature("cities", "count", "30d", `"shape": "categories", "per": "city"`) + `]}`,
		"/v1/query": `{"at": 1532496076032, "results": [{"entity": {"user_id": "u7"}, "features": {` + answer("great", "1234567890.12") + "," +
			answer("weekly", "-9223372036854775808") + "," + answer("note", `"`+strings.Repeat("x", 200)+`"`) + "," +
			answer("cities", `{"`+strings.Repeat("x", 100)+`": 7}`) + `}}]}`,
		"/v1/timeline/great":  fmt.Sprintf(points, 1532000000000),
		"/v1/timeline/weekly": fmt.Sprintf(points, 1500000000000),
	})
	for _, screen := range browser.Screens {
		tab.Use(t, screen)
		tab.Run(t, chromedp.Navigate("about:blank"), chromedp.Navigate(base+"/#/user_id/u7"))
		holds(t, tab, `document.querySelectorAll('.axes button').length === 2 && document.querySelectorAll('[data-spark]').length === 2`)
		shows(t, tab, "[data-feature=great] .value", "1,234,567,890.12")
		shows(t, tab, ".axis", "2017-07-14 02:402018-07-25 05:21") // years differ
		if hidden := evaluate[[]string](t, tab, `[...document.querySelectorAll('.marked td.value')].filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.textContent)`); len(hidden) > 0 {
			t.Errorf("%s: the cells of %q are too narrow", screen.Name, hidden)
		}
		if wide := evaluate[int](t, tab, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: the page is %d pixels wider than the screen", screen.Name, wide)
		}
	}
}
