package main

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/browser"
)

// An operator sees the greatest keys only after a click, and walks to the pages of their entities.
func TestPageOfGreatestKeys(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, broker := pageServer(t)
	writePayments(t, broker, "12.50", "7.25")
	write(t, broker, generate.Logins, login("u\u202e8", "d7"))
	counts(t, tab, base, 3)
	holds(t, tab, `!document.querySelector('#greatest').hidden && document.querySelector('#keys').children.length === 0`)
	tab.Run(t, chromedp.SendKeys("#greatest summary", kb.Enter))
	shows(t, tab, "#keys", "user_id u\\u{202e}8")
	shows(t, tab, "#keys thead", "EntityBytesFeaturesShard")
	shows(t, tab, "#keys", "user_amount_1d, user_amount_part, user_avg_amount_7d and ")
	tab.Run(t, chromedp.SendKeys("#keys a[href='#/user_id/u7']", kb.Enter))
	shows(t, tab, "[data-feature=user_amount_1d] .value", "19.75")
	quiet(t, tab, base)

	// Keys of hashes and of what is no longer defined lead nowhere, and it is said what is missing.
	tab.Run(t, chromedp.Navigate(inFront(t, base, map[string]string{"/v1/greatest-keys": `{"at": 1532496076032, "looked": 7000,
		"incomplete": "10.0.0.2:6379: nothing listens there", "greatest_keys": [
			{"key": "{weir:1}g:3f9a", "bytes": 600000, "features": ["user_tx_1h"], "shard": 1, "server": "10.0.0.1:6379"},
			{"key": "{weir:0}gone:u7", "bytes": 10, "features": [], "shard": 0, "server": "10.0.0.3:6379"}]}`})+"/#/operations"))
	holds(t, tab, `!document.querySelector('#greatest').hidden`)
	tab.Run(t, chromedp.SendKeys("#greatest summary", kb.Enter))
	shows(t, tab, "#keys .note", "These are not all keys: 10.0.0.2:6379: nothing listens there.")
	shows(t, tab, "#keys .hint", "Of 7,000 keys, at 05:21:16 UTC")
	shows(t, tab, "#keys tbody", "{weir:1}g:3f9a586 KiBuser_tx_1h110.0.0.1:6379{weir:0}gone:u710 Bnone that is defined010.0.0.3:6379")
	holds(t, tab, `!document.querySelector('#keys a')`)
}
