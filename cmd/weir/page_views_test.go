package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/browser"
)

// pageDefinitions are features of several kinds; two of them name the entities of others.
const pageDefinitions = `
streams:
  transaction:
    topic: transactions
    match: type == "transaction"
    timestamp: {path: timestamp, unit: ms}
    fields: {user_id: string, device_id: string, amount: {type: decimal, required: true}}
  login:
    topic: logins
    match: type == "login"
    timestamp: {path: timestamp, unit: ms}
    fields: {user_id: string, device_id: string}
features:
  # Payments of a user in an hour.
  user_tx_1h: COUNT(1h, transaction, user_id)
  user_amount_1d: SUM(1d, transaction, amount, user_id)
  user_avg_amount_7d: {function: avg, window: 7d, stream: transaction, field: amount, by: user_id, owner: risk}
  user_amount_part: {expr: user_amount_1d / user_tx_1h}
  user_tx_lifetime: COUNT(lifetime, transaction, user_id)
  user_device_tx_30d: COUNT(30d, transaction, user_id, device_id)
  user_device_ids_30d: SET(30d, login, user_id, device_id)
  device_user_ids_30d: SET(30d, login, device_id, user_id)
  device_users_30d: COUNT_DISTINCT(30d, login, device_id, user_id)
services:
  payment_risk: [user_tx_1h, user_amount_1d, user_device_tx_30d, device_users_30d]
`

// pageServer starts a server of these, and returns its address and that of its broker.
func pageServer(t *testing.T) (base, broker string) {
	t.Helper()
	flags, _ := servers(t, allTopics)
	flags[1] = writeFile(t, t.TempDir(), "features.yaml", pageDefinitions)
	base = start(t, append([]string{"run"}, flags...)...).address(t)
	ready(t, base)
	return base, flags[7]
}

// login is a record of a user on a device.
func login(user, device string) string {
	return `{"type": "login", "timestamp": NOW, "user_id": "` + user + `", "device_id": "` + device + `", "ip": "10.0.0.1", "success": true}`
}

// From one entity an analyst navigates to related entities, and back.
func TestPageOfAnEntity(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, broker := pageServer(t)
	writePayments(t, broker, "12.50", "7.25", "100")
	write(t, broker, generate.Logins, login("u7", "d7"), login("u7", "d8"), login("u8", "d7"), login("u9", "d7"), login("u9", "d8"))
	counts(t, tab, base, 8)

	// The search leads to a page with all features by what they describe, each with its timeline.
	holds(t, tab, `document.querySelectorAll('#find-key option').length > 0`)
	tab.Run(t, chromedp.SetValue("#find-key", "user_id"), chromedp.SendKeys("#find-id", "u7"+kb.Enter))
	shows(t, tab, "#entity-title", "user_id u7")
	holds(t, tab, `location.hash === '#/user_id/u7' && document.activeElement.id === 'entity-title' && document.title === 'u7 – Weir'`)
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")
	shows(t, tab, "[data-feature=user_device_ids_30d] .value", "2 values")
	shows(t, tab, "#entity-said", "6 of 6 features have events")
	holds(t, tab, `[...document.querySelectorAll('.answers .group')].map(g => g.textContent).join() ===
		'How often,How much,With whom and what,Shares and what is derived'`)
	shows(t, tab, "[data-spark=user_amount_1d] rect:last-of-type title", ": 119.75")
	shows(t, tab, "[data-spark=user_amount_1d] rect:nth-of-type(2) title", ": 0")
	// All share one axis, which can be another: on that of a month a day is narrow.
	width := `Number(document.querySelector('[data-spark=user_amount_1d] .ground').getAttribute('width'))`
	before := evaluate[float64](t, tab, "%s", width)
	tab.Run(t, chromedp.SendKeys(".axes button:last-child", kb.Enter))
	holds(t, tab, `document.querySelector('.axes button:last-child').getAttribute('aria-pressed') === 'true'`)
	if after := evaluate[float64](t, tab, "%s", width); after <= 0 || after >= before/2 {
		t.Errorf("a day is %v wide on the axis of a month, want less than half of the %v on that of a week", after, before)
	}

	// The network: its devices, and their users, of whom one is met by both.
	holds(t, tab, `[...document.querySelectorAll('.network [data-node]')].map(n => n.dataset.node).join() ===
		'user_id u7,device_id d7,device_id d8,user_id u9,user_id u8'`)
	holds(t, tab, `[...document.querySelectorAll('.network .shared.node')].map(n => n.getAttribute('aria-label')).join() === 'user_id u9, met by 2'`)
	tab.Run(t, chromedp.Focus("[data-node='device_id d7']"), chromedp.KeyEvent(kb.Enter))
	shows(t, tab, "#entity-title", "device_id d7")
	shows(t, tab, "[data-whole=device_user_ids_30d]", "u7u8u9")
	tab.Run(t, chromedp.NavigateBack())
	shows(t, tab, "#entity-title", "user_id u7")
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")
	tab.Run(t, chromedp.Reload())
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")

	// Features of two keys are on the page of both.
	tab.Run(t, chromedp.SendKeys("#entity-parts a[href='#/user_id/u7/device_id/d7']", kb.Enter))
	shows(t, tab, "[data-feature=user_device_tx_30d] .value", "3")
	tab.Run(t, chromedp.SendKeys("#find-id", "device_id=d8 user_id=u9"+kb.Enter))
	holds(t, tab, `location.hash === '#/device_id/d8/user_id/u9' && document.querySelector('#find-id').value === ''`)
	shows(t, tab, "[data-feature=user_device_tx_30d] .words", "last 30 days · no event")

	// Of many entities that it was seen with, all can be shown.
	var many []string
	for i := range 30 {
		many = append(many, login(fmt.Sprint("u", 100+i), "d30"))
	}
	write(t, broker, generate.Logins, many...)
	counts(t, tab, base, 38)
	tab.Run(t, chromedp.Navigate(base+"/#/device_id/d30"))
	shows(t, tab, "#entity-parts .hint + .chips .more", "18 more")
	tab.Run(t, chromedp.Click("#entity-parts .hint + .chips .more"))
	holds(t, tab, `document.querySelectorAll('#entity-parts .hint + .chips a').length === 30`)

	// A moment in the URL is kept; one that is too far back is said in words.
	tab.Run(t, chromedp.Navigate(base+"/#/user_id/u7?at=2018-07-25T05:21:16Z"))
	shows(t, tab, "[data-feature=user_amount_1d] .words", "further back than is kept: ask from ")
	quiet(t, tab, base)

	// A key may be shortened while it is clear which one is meant.
	tab.Run(t, chromedp.Navigate(base+"/#/user/u7/dev/d7?at=2018-07-25T05:21:16Z"))
	holds(t, tab, `location.hash.startsWith('#/user_id/u7/device_id/d7?at=2018')`)
	tab.Run(t, chromedp.Navigate(base+"/#/user/u7"))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")
	tab.Run(t, chromedp.Navigate(base+"/#/card/c7"))
	shows(t, tab, "#entity-parts .note", `No feature has the key "card". The keys are device_id, user_id.`)
	tab.Run(t, chromedp.Navigate(inFront(t, base, map[string]string{"/v1/features": `{"services": [], "streams": [], "lists": [], "features": [
		{"name": "a", "keys": [{"name": "user_id"}], "series": []}, {"name": "b", "keys": [{"name": "user_ip"}], "series": []}]}`})+"/#/user/u7"))
	shows(t, tab, "#entity-parts .note", `No feature has the key "user". Did you mean user_id or user_ip?`)
	tab.Run(t, chromedp.Click("#entity-parts .note a:last-child"))
	holds(t, tab, `location.hash === '#/user_ip/u7'`)
}

// inFront starts a server with its own answers for some paths, and proxies the rest to another server.
func inFront(t *testing.T, base string, answers map[string]string) string {
	t.Helper()
	return between(t, base, func(w http.ResponseWriter, r *http.Request) bool {
		answer, ok := answers[r.URL.Path]
		if ok {
			_, _ = w.Write([]byte(answer))
		}
		return ok
	})
}

// The page begins with the busiest entities, with links to their pages unless the store hashes entities.
func TestPageStarts(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, broker := pageServer(t)
	writePayments(t, broker, "12.50")
	base := inFront(t, behind, map[string]string{"/v1/busiest": `{"busiest": [
		{"key": "device_id", "entities": [], "rest": 0},
		{"key": "user_id", "entities": [{"entity": "u7", "events": 9, "error": 0}, {"entity": "u8", "events": 3, "error": 1}], "rest": 1}
	], "since": 1532496076032}`})
	tab.Run(t, chromedp.Navigate(base))
	shows(t, tab, "[data-busiest=user_id] table", "user_idEventsShareu79u83")
	shows(t, tab, "#busiest-since", "by events since 05:21:16 UTC")
	holds(t, tab, `!document.querySelector('[data-busiest=device_id]')`)
	tab.Run(t, chromedp.Evaluate(`document.querySelector('[data-busiest=user_id] a').click()`, nil)) // the table is redrawn meanwhile
	shows(t, tab, "#entity-title", "user_id u7")
	tab.Run(t, chromedp.NavigateBack())
	shows(t, tab, "#services", "payment_risk4 features")
	tab.Run(t, chromedp.SendKeys("#services a", kb.Enter))
	shows(t, tab, "#inputs", "device_id")
	quiet(t, tab, base)

	hashed := `{"busiest": [{"key": "user_id", "entities": [{"entity": "3f9a", "events": 9, "error": 0}], "rest": 0}], "since": 0, "hashed": true}`
	tab.Run(t, chromedp.Navigate(inFront(t, behind, map[string]string{"/v1/busiest": hashed})))
	shows(t, tab, "[data-busiest=user_id] table", "3f9a9")
	holds(t, tab, `!document.querySelector('[data-busiest=user_id] a')`)
}

// An operator sees the figures at once, and the tables behind them.
func TestPageOfOperations(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	base := start(t, append([]string{"run"}, flags...)...).address(t)
	ready(t, base)
	tab.Run(t, chromedp.Navigate(base+"/#/operations"))
	shows(t, tab, "[data-figure=partitions] .value", "4")
	if text := evaluate[string](t, tab, `document.querySelector('#figures').textContent`); strings.Contains(text, "…") {
		t.Errorf("a figure is still unknown: %s", text)
	}
	shows(t, tab, "[data-figure=events] dt", "Events per second")
	shows(t, tab, "[data-figure=events] .hint", "0 since the start")
	writePayments(t, flags[7], "12.50", "7.25", "100", "true")
	shows(t, tab, "[data-figure=events] .hint", "4 since the start")
	shows(t, tab, "[data-figure=dead] .value", "1")
	shows(t, tab, "[data-details=dead]", "wrong_type")
	shows(t, tab, "[data-details=dead] .hint", "weir deadletters show transactions/")
	shows(t, tab, "[data-figure=freshness] .value", "s") // or ms if the machine is not busy
	// As soon as a look finds no new event, the ages are those since the start.
	shows(t, tab, "[data-figure=freshness] .hint", "median age when applied, since the start; 99 % within ")
	shows(t, tab, "[data-figure=definitions] .hint", "as at the start")
	shows(t, tab, "[data-figure=build] .value", "devel")
	quiet(t, tab, base)

	// Backfills show their progress, and the length of a key is judged.
	tab.Run(t, chromedp.Navigate(inFront(t, base, map[string]string{
		"/v1/status": `{"at": 1532496076032, "questions": [], "backfills": [
			{"features": ["a", "b"], "topic": "payments", "applied": 25, "total": 100, "share": 0.25, "rate": 5, "seconds_left": 15, "files": {"count": 2, "applied": 30, "total": 40}},
			{"features": ["c"], "topic": "logins", "applied": 996, "total": 1000, "share": 0.996}]}`,
		"/metrics": "weir_greatest_key_bytes 2.097152e+06\n",
		"/readyz": `{"ready": false, "checks": [{"name": "redis", "ready": false, "error": "does not answer"}],
			"definitions": {"version": "v1", "last_reload": {"at": "2018-07-25T05:21:16Z", "loaded": false, "error": "a.yaml:1:1: no such function\na.yaml:2:1: no such stream"}}}`,
	})+"/#/operations"))
	shows(t, tab, "[data-details=backfills] tbody", "a, bpayments25 %; 75 % of 40 rows of files15.0 s")
	shows(t, tab, "[data-details=backfills] tbody", "clogins99 %not known") // it is not done
	shows(t, tab, "[data-figure=greatest].warn .value", "2.0 MiB")
	shows(t, tab, "[data-figure=greatest] .hint", "the greatest of all are listed below")
	shows(t, tab, "[data-figure=definitions].warn .hint", "a change was refused at 2018-07-25 05:21")
	shows(t, tab, "[data-details=checks] tbody", "redisdoes not answerdefinitionsa.yaml:1:1: no such functiondefinitionsa.yaml:2:1: no such stream")
}

// An author sees the mistakes in a file with their places, and then what its features would answer.
func TestPageOfTheEditor(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, broker := pageServer(t)
	writePayments(t, broker, "12.50", "7.25", "true")
	counts(t, tab, base, 3)
	tab.Run(t, chromedp.Navigate(base+"/#/editor"))
	holds(t, tab, `document.querySelector('#draft-text').value.includes('COUNT(1h, transaction, user_id)')`)
	tab.Run(t, chromedp.SetValue("#draft-text", "features:\n  fast: COUNT(5m, transactions, user_id)\n"), chromedp.SendKeys("#draft .main", kb.Enter))
	shows(t, tab, "#draft-result", `new.yaml:2:19: unknown stream "transactions"; did you mean "transaction"?`)
	shows(t, tab, "#draft-said", "1 mistake.")
	tab.Run(t, chromedp.SendKeys("#draft-result button", kb.Enter))
	holds(t, tab, `document.activeElement.id === 'draft-text' && document.activeElement.value.slice(document.activeElement.selectionStart).startsWith('transactions,')`)
	tab.Run(t, chromedp.SetValue("#draft-text", "features:\n  fast: SUM(5m, transaction, amount, user_id)\n"), chromedp.SendKeys("#draft .main", kb.Enter))
	shows(t, tab, "#draft-result", "3 records since ")
	shows(t, tab, "#draft-result .problem", "1 would be set aside as wrong_type.transactions/")
	shows(t, tab, "[data-preview=fast] .facts", "Entities1")
	shows(t, tab, "[data-preview=fast] .facts", "at most, for all features of the same keys")
	shows(t, tab, "[data-preview=fast]", "user_id=u7219.75")
	shows(t, tab, "#draft-result div.note", "Once it is in use:fast: new, from nothing: complete once it is filled, or after 5m")
	// A file in use is offered with its text, and checked in its place.
	tab.Run(t, chromedp.SetValue("#draft-file", ""), chromedp.Evaluate(`const file = document.querySelector('#draft-file'); file.selectedIndex = 1; file.dispatchEvent(new Event('change'))`, nil))
	holds(t, tab, `location.hash.startsWith('#/editor?file=') && document.querySelector('#draft-text').value.includes('user_tx_lifetime: COUNT(lifetime')`)
	tab.Run(t, chromedp.SendKeys("#draft .main", kb.Enter))
	shows(t, tab, "[data-preview=user_tx_lifetime] .facts", "only these records, a part of the window")
	holds(t, tab, `document.querySelectorAll('[data-preview]').length === 9`)
	// It says what a change does to those who ask.
	tab.Run(t, chromedp.Evaluate(`{ const box = document.querySelector('#draft-text'); box.value = box.value.replace('COUNT(1h', 'COUNT(2h').replace('COUNT(30d', 'COUNT(30h'); }`, nil),
		chromedp.SendKeys("#draft .main", kb.Enter))
	shows(t, tab, "#draft-result div.note", "user_tx_1h: answers from its state, which reaches back 1h: complete once it is filled, or after 2h (in payment_risk)")
	shows(t, tab, "#draft-result div.note", "user_device_tx_30d: answers from its tiles of 1d, which reach back 30d: complete once it is filled, or after 30h (in payment_risk)")
	quiet(t, tab, base)

	// Examples keep the digits that JavaScript would round.
	tab.Run(t, chromedp.Navigate(inFront(t, base, map[string]string{"/v1/preview": `{"findings": [], "preview": {"records": 1, "since": 0, "events": 1, "features": [
		{"name": "big", "definition": "", "by": ["user_id"], "entities": 1, "asked": 1, "nulls": 0, "examples": [
			{"entity": "user_id=u7", "events": 1, "answer": {"value": 92233720368547758.07}}, {"entity": "user_id=u8", "events": 1, "answer": {"value": [1e-07, "a"]}}]}]}}`})+"/#/editor"))
	holds(t, tab, `document.querySelector('#draft-text').value !== ''`)
	tab.Run(t, chromedp.SendKeys("#draft .main", kb.Enter))
	shows(t, tab, "[data-preview=big] tbody", `user_id=u7192233720368547758.07user_id=u81[1e-07,"a"]`)
}

// An operator sees the records of dead letters only after a click, with invisible characters escaped.
func TestPageOfDeadLetters(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, broker := pageServer(t)
	write(t, broker, generate.Transactions, `{"type": "transaction", "timestamp": NOW, "amount": "<img src=x>`+"\u202e\"}", "\x00\xff", strings.Repeat("x", 5000))
	counts(t, tab, base, 3)
	tab.Run(t, chromedp.Navigate(base+"/#/operations"))
	shows(t, tab, "[data-figure=dead] .value", "3")
	holds(t, tab, `document.querySelector('#samples').children.length === 0`)
	tab.Run(t, chromedp.SendKeys("#letters summary", kb.Enter))
	holds(t, tab, `document.querySelectorAll('[data-letter]').length === 3`)
	shows(t, tab, "#samples", `<img src=x>\u{202e}`)
	shows(t, tab, "#samples", "00 ff")
	shows(t, tab, "#samples", "The first 4,096 of 5,000 bytes")
	holds(t, tab, `!document.querySelector('#samples img')`)
	// A long record is entirely visible.
	holds(t, tab, `[...document.querySelectorAll('#samples pre')].every(pre => pre.scrollWidth <= pre.clientWidth)`)
	writePayments(t, broker, "true")
	testkit.Eventually(t, patience, "the later letter", func() (bool, string) {
		tab.Run(t, chromedp.SendKeys("#letters-again", kb.Enter))
		found := evaluate[string](t, tab, `document.querySelector('[data-letter] h3')?.textContent ?? ''`)
		return strings.HasPrefix(found, "wrong_type"), found
	})
	quiet(t, tab, base)
}

// The catalogue shows the path from events to answers, and its filter is in the URL.
func TestPageOfFeatures(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, _ := pageServer(t)
	tab.Run(t, chromedp.Navigate(base+"/#/features"))
	shows(t, tab, "#catalogue", "Payments of a user in an hour")
	shows(t, tab, "#streams", "transactionTopictransactions")
	shows(t, tab, "[data-entry=device_users_30d] .lineage",
		"TopicloginsStreamloginSeriesdistinct: members, shared with 1Featuredevice_users_30dServicespayment_risk")
	tab.Run(t, chromedp.SendKeys("#search", "lifetime"))
	shows(t, tab, "#count", "1 of 9")
	holds(t, tab, `location.hash === '#/features?words=lifetime'`)
	tab.Run(t, chromedp.Reload())
	shows(t, tab, "#count", "1 of 9")
	tab.Run(t, chromedp.SendKeys("[data-entry=user_tx_lifetime] .button", kb.Enter))
	shows(t, tab, "#chosen", "user_tx_lifetime")
	quiet(t, tab, base)

	// The catalogue shows the cost and the completeness of state. A derived feature has the streams of its parts.
	tab.Run(t, chromedp.Navigate(inFront(t, base, map[string]string{"/v1/features": `{"services": [], "lists": [],
		"streams": [{"name": "payment", "topics": ["payments"], "entities": 2, "mutations": 5}],
		"features": [{"name": "part", "definition": "{expr: a / b}", "function": "expr", "parts": ["a", "b"], "owner": "risk", "keys": [],
			"complete_since": 1532496076032, "filled": 0.25, "series": [
				{"id": "a", "stream": "payment", "state": "tiles", "measure": "sum", "bytes_once": 30, "bytes_full": 1200},
				{"id": "b", "stream": "payment", "state": "tiles", "measure": "count", "bytes_once": 20, "bytes_full": 800}]}]}`})+"/#/features"))
	shows(t, tab, "[data-entry=part] .lineage", "TopicpaymentsStreampaymentFeaturesabSeriessum: tilescount: tilesFeaturepart")
	shows(t, tab, "[data-entry=part] .facts", "Ownerrisk")
	shows(t, tab, "[data-entry=part] .facts", "Bytes of an entity50 with one event, 2,000 at most")
	shows(t, tab, "[data-entry=part] .facts", "Complete since2018-07-25 05:21 UTCFilled from the log25 %")
	shows(t, tab, "#streams", "An event changesup to 2 entities by 5 mutations")
}

// Every view can be used by all, on every screen.
func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, broker := pageServer(t)
	writePayments(t, broker, "12.50", "7.255", "true")
	write(t, broker, generate.Logins, login("u7", "d7"), login("u8", "d7"))
	counts(t, tab, base, 5)
	for _, screen := range browser.Screens {
		tab.Use(t, screen)
		for _, view := range []struct{ hash, selector, text string }{
			{"#/", "#services", "payment_risk"},
			{"#/user_id/u7", ".network", "u8"},
			{"#/card/c7", "#entity-parts", "The keys are"},
			{"#/ask?service=payment_risk&entity=user_id%3Du7%26device_id%3Dd7", "#answer", "user_device_tx_30d"},
			{"#/ask?feature=device_users_30d&feature=device_user_ids_30d&entity=device_id%3Dd7&entity=device_id%3Dd8&members.device_users_30d=u7", "#answer", "no event"},
			{"#/ask?feature=user_tx_1h&entity=user_id%3Du7&at=noon", "#answer", "noon"},
			{"#/features", "#catalogue", "user_tx_1h"},
			{"#/editor", "#draft-file", "features.yaml"},
			{"#/operations", "[data-details=dead]", "wrong_type"},
		} {
			tab.Run(t, chromedp.Navigate(base+"/"+view.hash))
			shows(t, tab, view.selector, view.text)
			tab.Run(t, chromedp.Evaluate(`for (const node of document.querySelectorAll('details')) node.open = true`, nil))
			switch view.hash {
			case "#/editor":
				tab.Run(t, chromedp.SendKeys("#draft .main", kb.Enter))
				shows(t, tab, "#draft-result", "would be set aside")
			case "#/operations":
				shows(t, tab, "#samples", "wrong_type")
				shows(t, tab, "#keys", "user_id u7")
			}
			for _, violation := range tab.Violations(t) {
				t.Errorf("%s, %s: %s", screen.Name, view.hash, violation)
			}
		}
	}
}

// If the server requires a token, the page says so and sends it.
func TestPageSendsItsToken(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	behind, err := url.Parse(start(t, append([]string{"run", "--roles", "api"}, flags...)...).address(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/") && r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": {"code": "unauthorized", "message": "a bearer token is needed"}}`))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	defer server.Close()
	tab.Run(t, chromedp.Navigate(server.URL))
	shows(t, tab, "#trouble .problem", "a bearer token is needed")
	tab.Run(t, chromedp.Navigate(server.URL+"/#/operations"))
	shows(t, tab, "#live-details .problem", "a bearer token is needed")
	tab.Run(t, chromedp.Click("#access summary"), chromedp.SendKeys("#token", "secret"+kb.Enter))
	shows(t, tab, "#live-note", "This process answers questions only")
	tab.Run(t, chromedp.Navigate(server.URL+"/#/features"))
	shows(t, tab, "#catalogue", "device_tx_7d")
	tab.Run(t, chromedp.Reload())
	shows(t, tab, "#catalogue", "device_tx_7d")
}

// The page of a process without an API shows the processor's figures.
func TestPageOfAProcessor(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	base := start(t, append([]string{"run", "--roles", "processor"}, flags...)...).address(t)
	ready(t, base)
	tab.Run(t, chromedp.Navigate(base))
	shows(t, tab, "#trouble", "This process answers no questions. Open the page of a process with the role api.")
	tab.Run(t, chromedp.Click("#trouble a"))
	shows(t, tab, "[data-figure=partitions] .value", "4")
}
