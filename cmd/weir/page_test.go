package main

import (
	"fmt"
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
		found := evaluate[string](t, tab, `document.querySelector(%q)?.textContent ?? ''`, selector)
		return strings.Contains(found, text), found
	})
}

// holds waits until an expression in JavaScript is true.
func holds(t *testing.T, tab *browser.Tab, expression string) {
	t.Helper()
	testkit.Eventually(t, patience, expression, func() (bool, string) {
		return evaluate[bool](t, tab, "%s", expression), evaluate[string](t, tab, `location.hash + ' ' + document.querySelector('main').innerText`)
	})
}

// evaluate returns the value of an expression in JavaScript.
func evaluate[T any](t *testing.T, tab *browser.Tab, format string, args ...any) (value T) {
	t.Helper()
	tab.Run(t, chromedp.Evaluate(fmt.Sprintf(format, args...), &value))
	return value
}

// counts waits until the page has counted a number of events: what is asked then has them all.
func counts(t *testing.T, tab *browser.Tab, base string, events int) {
	t.Helper()
	tab.Run(t, chromedp.Navigate(base+"/#/operations"))
	shows(t, tab, "[data-figure=events] .hint", fmt.Sprintf("%d since the start", events))
}

// quiet checks that the console has no errors, and that the page contacted no other server.
func quiet(t *testing.T, tab *browser.Tab, base string) {
	t.Helper()
	if troubles := tab.Troubles(); len(troubles) > 0 {
		t.Errorf("the browser's console has errors: %q", troubles)
	}
	for _, address := range tab.Addresses() {
		if !strings.HasPrefix(address, base+"/") {
			t.Errorf("the page sent a request to %s, outside of its server", address)
		}
	}
}

// write writes records of now to a topic.
func write(t *testing.T, broker, topic string, records ...string) {
	t.Helper()
	writer := generate.NewKafkaWriter(&kafka.Transport{}, []string{broker})
	defer writer.Close()
	now := time.Now()
	for _, record := range records {
		value := strings.Replace(record, "NOW", fmt.Sprint(now.UnixMilli()), 1)
		if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: topic, Value: []byte(value), Time: now}); err != nil {
			t.Fatal(err)
		}
	}
}

func writePayments(t *testing.T, broker string, amounts ...string) {
	t.Helper()
	for _, amount := range amounts {
		write(t, broker, generate.Transactions, `{"type": "transaction", "timestamp": NOW, "user_id": "u7", "device_id": "d7", "amount": `+amount+`}`)
	}
}

// A user asks by the keyboard alone, and the URL keeps the question.
func TestPageAsks(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	flags, _ := servers(t, allTopics)
	base := start(t, append([]string{"run"}, flags...)...).address(t)
	ready(t, base)
	writePayments(t, flags[7], "12.50", "7.25", "100")
	counts(t, tab, base, 3)
	tab.Run(t, chromedp.Navigate(base+"/#/ask"))
	holds(t, tab, `document.querySelectorAll('#names option').length > 0`)
	tab.Run(t, chromedp.SendKeys("#add", "device_tx_7d"+kb.Enter+"user_amount_1d"+kb.Enter+"user_approved_part_1d"+kb.Enter),
		chromedp.SendKeys("#key-device_id", "d7"), chromedp.SendKeys("#key-user_id", "u7"+kb.Enter))
	shows(t, tab, "[data-feature=device_tx_7d] .value", "3")
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")
	shows(t, tab, "[data-feature=user_amount_1d] .words", "last day · complete")
	shows(t, tab, "#said", "3 features at ")
	asked := evaluate[string](t, tab, `location.hash`)
	tab.Run(t, chromedp.Reload())
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.75")
	holds(t, tab, `document.querySelector('#key-user_id').value === 'u7'`)
	// The same question again is asked again.
	writePayments(t, flags[7], "0.05")
	testkit.Eventually(t, patience, "the later payment", func() (bool, string) {
		tab.Run(t, chromedp.SendKeys("#key-user_id", kb.Enter))
		found := evaluate[string](t, tab, `document.querySelector('[data-feature=user_amount_1d] .value')?.textContent ?? ''`)
		return found == "119.8", found
	})

	// A pending event counts.
	event := fmt.Sprintf(`{"type": "transaction", "timestamp": %d, "user_id": "u7", "device_id": "d7", "amount": 1}`, time.Now().UnixMilli())
	tab.Run(t, chromedp.Evaluate(`document.querySelector('#question details').open = true`, nil),
		chromedp.SetValue("#pending-stream", "transaction"), chromedp.SendKeys("#pending-event", event), chromedp.SendKeys("#key-user_id", kb.Enter))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "120.8")
	shows(t, tab, "#answer .note", "Counts a pending event of transaction")
	tab.Run(t, chromedp.SendKeys("#key-device_id", "8"), chromedp.SendKeys("#key-user_id", "8"+kb.Enter)) // d78 and u78
	shows(t, tab, "#answer .note", "No answer counts the pending event of transaction")
	tab.Run(t, chromedp.NavigateBack())
	shows(t, tab, "[data-feature=user_amount_1d] .value", "120.8")

	// Back is the question before.
	tab.Run(t, chromedp.NavigateBack())
	shows(t, tab, "[data-feature=user_amount_1d] .value", "119.8")
	if hash := evaluate[string](t, tab, `location.hash`); hash != asked {
		t.Errorf("the browser's Back leads to %s, want %s", hash, asked)
	}

	// The page asks for members of features that need them; a feature can be removed.
	tab.Run(t, chromedp.SendKeys("#add", "device_users_30d"+kb.Enter), chromedp.SendKeys("#inputs summary", kb.Enter),
		chromedp.SendKeys("#members-device_users_30d", "u7, u8"+kb.Enter))
	shows(t, tab, "[data-whole=device_users_30d] tbody tr:last-child", "u8falseno event")
	tab.Run(t, chromedp.SendKeys("#chosen li:last-child button", kb.Enter), chromedp.SendKeys("#key-user_id", kb.Enter))
	holds(t, tab, `document.querySelector('[data-feature=user_amount_1d]') && !document.querySelector('[data-feature=device_users_30d]')`)

	// Several entities are columns, and lead to their pages.
	tab.Run(t, chromedp.SendKeys("#more-entities", kb.Enter),
		chromedp.SendKeys("#key-device_id-2", "d8"), chromedp.SendKeys("#key-user_id-2", "u8"+kb.Enter))
	shows(t, tab, "[data-feature=device_tx_7d]", "40no event")
	shows(t, tab, ".answers thead th:last-child a", "device_id d8user_id u8")
	quiet(t, tab, base)

	// The page shows the server's error message, and what the box lacks.
	tab.Run(t, chromedp.SendKeys("#at", "noon"), chromedp.SendKeys("#key-user_id", kb.Enter))
	shows(t, tab, "#answer .problem", `at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; "noon" is not`)
	tab.Run(t, chromedp.SendKeys("#add", "nothing"+kb.Enter))
	shows(t, tab, "#add-problem", `There is no feature "nothing".`)
	tab.Run(t, chromedp.Navigate(base+"/#/ask"))
	holds(t, tab, `document.querySelector('#at').value === ''`) // emptied once the view of the URL is shown
	tab.Run(t, chromedp.SendKeys("#at", kb.Enter))
	shows(t, tab, "#add-problem", "Choose a feature or a service.")
}

// An answer with several numbers is a table with a bar for each.
func TestPageShowsShares(t *testing.T) {
	t.Parallel()
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
  each: AVG(7d, transaction, amount, user_id)
services:
  all: [by_device, largest, devices, sizes, usual, each]
`)
	base := start(t, append([]string{"run"}, flags...)...).address(t)
	ready(t, base)
	writePayments(t, flags[7], "12.50", "7.25", "100", "60")
	counts(t, tab, base, 4)
	tab.Run(t, chromedp.Navigate(base+"/#/ask?service=all&entity=user_id%3Du7"))
	shows(t, tab, "[data-whole=by_device] table", "device_idsumShared7179.75")
	shows(t, tab, "[data-whole=devices] table", "ValueCountShared74")
	shows(t, tab, "[data-whole=sizes] table", "ValuesCountSharebelow 10110 to below 50150 and above2")
	shows(t, tab, "[data-feature=usual] .words", "within ± 1 %")
	// Names are not numbers and have no bars.
	shows(t, tab, "[data-whole=largest] thead", "amountmax")
	widths := evaluate[[]string](t, tab, `[...document.querySelectorAll('.shares rect')].map(r => r.getAttribute('width'))`)
	if diff := cmp.Diff([]string{"100", "100", "50", "50", "100"}, widths); diff != "" {
		t.Errorf("widths of the bars (-want +got):\n%s", diff)
	}
	// A rounded number has all its digits at hand.
	shows(t, tab, "[data-feature=each] .value", "44.94")
	tab.Run(t, chromedp.SendKeys("[data-feature=each] button", kb.Enter))
	shows(t, tab, "[data-feature=each] .value", "44.9375")
	quiet(t, tab, base)
}
