package main

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/browser"
)

// The names of entities may be empty and may have any characters: all have a page, and are found.
func TestPageOfEntitiesWithOddNames(t *testing.T) {
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
