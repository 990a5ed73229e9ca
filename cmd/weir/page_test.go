package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/browser"
)

// shows waits until an element of the page contains a text.
func shows(t *testing.T, tab *browser.Tab, selector, text string) {
	t.Helper()
	testkit.Eventually(t, patience, fmt.Sprintf("%q in %s", text, selector), func() (bool, string) {
		var found string
		tab.Run(t, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q)?.textContent ?? ''`, selector), &found))
		return strings.Contains(found, text), found
	})
}

// quiet checks that the console has no errors, and that the page contacted no other server.
func quiet(t *testing.T, tab *browser.Tab, base string) {
	t.Helper()
	if troubles := tab.Troubles(); len(troubles) > 0 {
		t.Errorf("on the console: %q", troubles)
	}
	for _, address := range tab.Addresses() {
		if !strings.HasPrefix(address, base+"/") {
			t.Errorf("the page asked for %s", address)
		}
	}
}

func writePayments(t *testing.T, broker string, amounts ...string) {
	t.Helper()
	writer := generate.NewKafkaWriter(&kafka.Transport{}, []string{broker})
	defer writer.Close()
	now := time.Now()
	for _, amount := range amounts {
		value := fmt.Sprintf(`{"type": "transaction", "timestamp": %d, "user_id": "u7", "device_id": "d7", "amount": %s}`, now.UnixMilli(), amount)
		if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: "transactions", Value: []byte(value), Time: now}); err != nil {
			t.Fatal(err)
		}
	}
}

// A user operates the page with the keyboard alone.
func TestPage(t *testing.T) {
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	base := start(t, append([]string{"run"}, flags...)...).address(t)
	ready(t, base)
	tab.Run(t, chromedp.Navigate(base))
	shows(t, tab, "#catalogue", "Payments of a user with this device")
	shows(t, tab, "#streams", "transactionTopictransactions")
	shows(t, tab, "[data-figure=partitions] .value", "4")

	// The live figures are updated.
	shows(t, tab, "[data-figure=events] .hint", "0 since the start")
	writePayments(t, flags[7], "12.50", "7.25", "100", "true")
	shows(t, tab, "[data-figure=events] .hint", "4 since the start")
	shows(t, tab, "[data-figure=dead] .value", "1")
	shows(t, tab, "[data-details=dead]", "wrong_type")
	shows(t, tab, "[data-details=dead]", "transactions/")
	shows(t, tab, "[data-figure=freshness] .value", "s") // or ms if the machine is not busy

	// A question gets the right answer, and a chart shows what it counts.
	tab.Run(t, chromedp.SendKeys("#add", "device_tx_7d"+kb.Enter+"user_amount_1d"+kb.Enter),
		chromedp.SendKeys("#key-device_id", "d7"), chromedp.SendKeys("#key-user_id", "u7"+kb.Enter))
	shows(t, tab, "[data-feature=device_tx_7d] .value", "3")
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")
	shows(t, tab, "[data-feature=user_amount_1d] .badge", "PRESENT")
	shows(t, tab, "[data-feature=device_tx_7d] rect:last-of-type title", ": 3")
	shows(t, tab, "[data-feature=device_tx_7d] rect:first-of-type title", ": 0")
	shows(t, tab, "[data-feature=user_amount_1d] rect:nth-of-type(24) title", ": 119.75")
	writePayments(t, flags[7], "0.05")
	shows(t, tab, "[data-figure=events] .hint", "5 since the start")
	tab.Run(t, chromedp.SendKeys("#key-user_id", kb.Enter))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.8")

	// A pending event counts.
	event := fmt.Sprintf(`{"type": "transaction", "timestamp": %d, "user_id": "u7", "device_id": "d7", "amount": 1}`, time.Now().UnixMilli())
	tab.Run(t, chromedp.Evaluate(`document.querySelector('#question details').open = true`, nil),
		chromedp.SetValue("#pending-stream", "transaction"), chromedp.SendKeys("#pending-event", event), chromedp.SendKeys("#key-user_id", kb.Enter))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "120.8")

	// The page asks for members of features that need them; a feature can be removed.
	tab.Run(t, chromedp.SendKeys("#add", "device_users_30d"+kb.Enter),
		chromedp.SendKeys("#members-device_users_30d", "u7, u8"+kb.Enter))
	shows(t, tab, "[data-feature=device_users_30d] tbody tr:last-child", "u8falseNOT_FOUND")
	tab.Run(t, chromedp.SendKeys("#chosen li:last-child button", kb.Enter), chromedp.SendKeys("#key-user_id", kb.Enter))
	testkit.Eventually(t, patience, "an answer without the feature", func() (gone bool, detail string) {
		tab.Run(t, chromedp.Evaluate(`document.querySelector('[data-feature=device_users_30d]') === null`, &gone))
		return gone, "it is there"
	})

	tab.Run(t, chromedp.SendKeys("#search", "lifetime"))
	shows(t, tab, "#count", "1 of 17")
	quiet(t, tab, base)

	// The page shows the server's error message.
	tab.Run(t, chromedp.SendKeys("#at", "noon"), chromedp.SendKeys("#key-user_id", kb.Enter))
	shows(t, tab, "#answer .problem", `at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; "noon" is not`)
	tab.Run(t, chromedp.SendKeys("#add", "nothing"+kb.Enter))
	shows(t, tab, "#add-problem", `There is no feature "nothing".`)
}

// An answer with several numbers is a table with a bar for each.
func TestPageShowsShares(t *testing.T) {
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	flags[1] = writeFile(t, t.TempDir(), "features.yaml", `
streams:
  transaction:
    topic: transactions
    timestamp: {path: timestamp, unit: ms}
    fields: {user_id: string, device_id: string, amount: decimal}
features:
  by_device: SUM(7d, transaction, amount, user_id, per=device_id)
  largest: MAX(7d, transaction, device_id, user_id, per=amount)
  devices: TOP_K(7d, transaction, device_id, user_id, k=3)
  sizes: HISTOGRAM(7d, transaction, amount, user_id, bins=[10, 50])
  usual: QUANTILE(7d, transaction, amount, user_id, p=0.5)
services:
  all: [by_device, largest, devices, sizes, usual]
`)
	base := start(t, append([]string{"run"}, flags...)...).address(t)
	ready(t, base)
	writePayments(t, flags[7], "12.50", "7.25", "100", "60")
	tab.Run(t, chromedp.Navigate(base))
	shows(t, tab, "[data-figure=events] .hint", "4 since the start")
	tab.Run(t, chromedp.SetValue("#service", "all"), chromedp.Evaluate(`document.querySelector('#service').dispatchEvent(new Event('change'))`, nil),
		chromedp.SendKeys("#key-user_id", "u7"+kb.Enter))
	shows(t, tab, "[data-feature=by_device] table", "device_idsumShared7179.75")
	shows(t, tab, "[data-feature=devices] table", "ValueCountShared74")
	shows(t, tab, "[data-feature=sizes] table", "ValuesCountSharebelow 10110 to below 50150 and above2")
	shows(t, tab, "[data-feature=usual] .facts", "within ± 1 %")
	// Names are not numbers and have no bars.
	shows(t, tab, "[data-feature=largest] thead", "amountmax")
	var widths []string
	tab.Run(t, chromedp.Evaluate(`[...document.querySelectorAll('.shares rect')].map(r => r.getAttribute('width'))`, &widths))
	if diff := cmp.Diff([]string{"100", "100", "50", "50", "100"}, widths); diff != "" {
		t.Errorf("widths of the bars (-want +got):\n%s", diff)
	}
	quiet(t, tab, base)
}

// If the server requires a token, the page says so and sends it.
func TestPageSendsItsToken(t *testing.T) {
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
	shows(t, tab, "#catalogue .problem", "a bearer token is needed")
	shows(t, tab, "#live-details .problem", "a bearer token is needed")
	tab.Run(t, chromedp.Click("#access summary"), chromedp.SendKeys("#token", "secret"+kb.Enter))
	shows(t, tab, "#catalogue", "device_tx_7d")
	shows(t, tab, "#live-note", "This process answers questions only")
	tab.Run(t, chromedp.Reload())
	shows(t, tab, "#catalogue", "device_tx_7d")
}

// The page of a process without an API shows the processor's figures.
func TestPageOfAProcessor(t *testing.T) {
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	base := start(t, append([]string{"run", "--roles", "processor"}, flags...)...).address(t)
	ready(t, base)
	tab.Run(t, chromedp.Navigate(base))
	shows(t, tab, "[data-figure=partitions] .value", "4")
	shows(t, tab, "#catalogue", "This process answers no questions. Open the page of a process with the role api.")
}
