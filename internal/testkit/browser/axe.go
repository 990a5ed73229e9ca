package browser

import (
	_ "embed"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe is axe-core 4.14.1, which checks pages for accessibility: axe.min.js of its npm package, as
// published, under the Mozilla Public License 2.0 (axe/LICENSE).
//
//go:embed axe/axe.min.js
var axe string

// Screen is what a page is shown on.
type Screen struct {
	Name          string
	Width, Height int64 // in CSS pixels
	Phone         bool
	Dark          bool
}

// Screens are those that a page must fit.
var Screens = []Screen{
	{Name: "light", Width: 1280, Height: 900},
	{Name: "dark", Width: 1280, Height: 900, Dark: true},
	{Name: "phone", Width: 390, Height: 844, Phone: true},
}

// Use shows the page on a screen.
func (b *Tab) Use(t testing.TB, s Screen) {
	t.Helper()
	scheme := emulation.MediaFeature{Name: "prefers-color-scheme", Value: "light"}
	if s.Dark {
		scheme.Value = "dark"
	}
	b.Run(t, emulation.SetDeviceMetricsOverride(s.Width, s.Height, 1, s.Phone),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{&scheme}))
}

// Violations returns what axe-core finds wrong with the page, a line for each element, and whether
// the page is wider than the screen.
func (b *Tab) Violations(t testing.TB) (found []string) {
	t.Helper()
	const run = `axe.run().then(found => [
		...found.violations.flatMap(v => v.nodes.map(node => v.id + ': ' + node.html.slice(0, 200) + ': ' + node.failureSummary)),
		...document.documentElement.scrollWidth > innerWidth ? ['the page is ' + document.documentElement.scrollWidth + ' pixels wide'] : [],
	])`
	b.Run(t, chromedp.Evaluate(axe, nil), chromedp.Evaluate(run, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return found
}
