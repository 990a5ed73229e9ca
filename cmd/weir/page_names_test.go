package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/browser"
)

// The names of entities may be empty and may have any characters: all have a page, and are found.
func TestPageOfEntitiesWithOddNames(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	base, broker := pageServer(t)
	write(t, broker, generate.Logins, login("u7", ""), login("u8", ""), login(`/8?#%2F'=`, "d7"), login("\u202e9", "d7"))
	counts(t, tab, base, 4)
	find := func(text string) {
		t.Helper()
		holds(t, tab, `document.querySelectorAll('#find-key option').length > 0`)
		tab.Run(t, chromedp.SetValue("#find-key", "user_id"), chromedp.SendKeys("#find-id", text+kb.Enter))
	}

	// An equals sign does not make a key.
	find(`/8?#%2F'=`)
	shows(t, tab, "#entity-title", `user_id /8?#%2F'=`)
	shows(t, tab, "[data-whole=user_device_ids_30d]", "d7")
	holds(t, tab, `document.title === "/8?#%2F'= – Weir"`)
	holds(t, tab, `[...document.querySelectorAll('.network text')].some(node => node.textContent === '\\u{202e}9')`)

	// A device without a name is met by two users.
	find("u7")
	holds(t, tab, `[...document.querySelectorAll('.network [data-node]')].map(n => n.dataset.node).join() === 'user_id u7,device_id ,user_id u8'`)
	tab.Run(t, chromedp.SendKeys("[data-whole=user_device_ids_30d] a", kb.Enter))
	shows(t, tab, "#entity-title", `device_id ""`)
	shows(t, tab, "[data-whole=device_user_ids_30d]", "u7u8")
	find("device_id=")
	holds(t, tab, `location.hash === '#/device_id/'`)
	quiet(t, tab, base)
}

// A long name wraps, so that a phone shows the numbers after it without scrolling.
func TestPageOfLongNamesOnAPhone(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	behind, _ := pageServer(t)
	long := strings.Repeat("0123456789", 10)
	base := inFront(t, behind, map[string]string{
		"/v1/busiest": `{"busiest": [{"key": "user_id", "entities": [{"entity": "` + long + `", "events": 1234567, "error": 0}], "rest": 0}], "since": 1532496076032}`,
		"/v1/greatest-keys": `{"at": 1532496076032, "looked": 1, "greatest_keys": [
			{"key": "{weir:1}g:` + long + `", "entity": {"user_id": "` + long + `"}, "bytes": 600000, "features": ["user_tx_1h"], "shard": 1}]}`,
	})
	for _, screen := range browser.Screens {
		if screen.Phone {
			tab.Use(t, screen)
		}
	}
	const seen = `[...document.querySelectorAll('%s td:nth-child(2)')].every(cell => cell.getBoundingClientRect().right <= innerWidth)`
	tab.Run(t, chromedp.Navigate(base))
	shows(t, tab, "[data-busiest=user_id] table", long+"1234567")
	if !evaluate[bool](t, tab, seen, "[data-busiest]") {
		t.Error("the number of events is outside of the screen")
	}
	tab.Run(t, chromedp.Navigate(base+"/#/operations"))
	holds(t, tab, `!document.querySelector('#greatest').hidden`)
	tab.Run(t, chromedp.SendKeys("#greatest summary", kb.Enter))
	shows(t, tab, "#keys tbody", "586 KiB")
	if !evaluate[bool](t, tab, seen, "#keys") {
		t.Error("the length of the key is outside of the screen")
	}
	quiet(t, tab, base)
}
