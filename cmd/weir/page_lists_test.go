package main

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weir-stream/weir/internal/testkit/browser"
)

// An analyst adds values to a list and removes them on the page, and sees who did so.
func TestPageOfLists(t *testing.T) {
	t.Parallel()
	tab := browser.Open(t)
	flags, _ := servers(t, map[string]int{"pay": 1, "weir.dead-letters": 1, "weir.lists": 1})
	flags[1] = writeFile(t, t.TempDir(), "features.yaml", `
streams:
  pay: {topic: pay, timestamp: at, fields: {card_id: string}}
lists:
  blocked_cards: {topic: weir.lists}
  trusted_accounts: {topic: weir.lists, type: int}
features:
  card_tx: COUNT(1d, pay, card_id)
  blocked: {expr: card_id in blocked_cards}
`)
	tokens := writeFile(t, t.TempDir(), "tokens", "0123456789abcdef0123 eve lists query\n0123456789abcdef4567 bob query\n")
	base := start(t, append([]string{"run", "--api.tokens_file", tokens}, flags...)...).address(t)
	tab.Run(t, chromedp.Navigate(base+"/"), chromedp.Click("#access summary"), chromedp.SendKeys("#token", "0123456789abcdef0123"+kb.Enter))
	holds(t, tab, `!document.querySelector('nav [data-view=lists]').hidden`)
	tab.Run(t, chromedp.Click("nav [data-view=lists]"))
	shows(t, tab, "#entries .note", "The list is empty.")
	tab.Run(t, chromedp.SendKeys("#entry-value", "<b>c1"), chromedp.SendKeys("#entry-until", "2999-01-01"), chromedp.SendKeys("#entry-why", "case 17"+kb.Enter))
	shows(t, tab, "#entry-said", "<b>c1 is added.")
	shows(t, tab, "#entries tbody tr", "2999-01-02 00:00:00 UTCevecase 17")
	shows(t, tab, "#entries tbody tr code", "<b>c1")
	tab.Run(t, chromedp.Evaluate(`document.querySelector('#entry-until').value = ''`, nil), chromedp.SendKeys("#entry-value", "c2"+kb.Enter))
	holds(t, tab, `document.querySelectorAll('#entries tbody tr').length === 2`)
	shows(t, tab, "#entries tbody tr:last-child", "for ever")
	tab.Run(t, chromedp.SendKeys("#entry-value", "c3"), chromedp.Click("#entry-look"))
	shows(t, tab, "#entries .note", "c3 is not in the list.")
	tab.Run(t, chromedp.SetValue("#entry-value", "c2"), chromedp.Click("#entry-look"))
	holds(t, tab, `document.querySelectorAll('#entries tbody tr').length === 1`)
	tab.Run(t, chromedp.Click("#entries button"))
	shows(t, tab, "#entry-said", "c2 is removed.")
	shows(t, tab, "#entries .hint", "Entries: 1")

	// The URL names the list; what the server refuses is said.
	tab.Run(t, chromedp.Navigate(base+"/#/lists?list=trusted_accounts"))
	shows(t, tab, "#entries .note", "The list is empty.")
	tab.Run(t, chromedp.SetValue("#entry-value", "x"), chromedp.SendKeys("#entry-value", kb.Enter))
	shows(t, tab, "#entries .problem", `add[0]: "x" is not a whole number of 64 bits, as the values of list trusted_accounts are`)

	// Who may not change lists is not offered them.
	tab.Run(t, chromedp.Click("#access summary"), chromedp.SetValue("#token", "0123456789abcdef4567"), chromedp.SendKeys("#token", kb.Enter))
	shows(t, tab, "#entries .note", "There are no lists, or you may not change them.")
	holds(t, tab, `document.querySelector('nav [data-view=lists]').hidden`)
}
