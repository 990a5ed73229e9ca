// Package browser opens a tab of a real Chromium, for tests of web pages.
package browser

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Tab is a tab of a real headless browser.
type Tab struct {
	// Context is the context of chromedp's actions.
	Context context.Context

	mu        sync.Mutex
	troubles  []string
	addresses []string
}

// Open starts Chromium with an empty profile and opens a tab. If Chromium is not installed, the
// test is skipped or, with WEIR_TEST_REQUIRE=1, fails.
func Open(t testing.TB) *Tab {
	t.Helper()
	if chromium() == "" {
		server.Skip(t, errNoBrowser)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium()), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		// Chromium's 300 MB may have to be read from a slow disk. By default chromedp waits 20 s.
		chromedp.WSURLReadTimeout(server.StartTimeout),
	}
	for _, flag := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync",
		"disable-dev-shm-usage", // small in containers
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	parent, end := context.WithTimeout(context.Background(), 5*server.StartTimeout) // the start and the test
	t.Cleanup(end)
	allocator, stop := chromedp.NewExecAllocator(parent, options...)
	t.Cleanup(stop)
	tab := new(Tab)
	var closeTab context.CancelFunc
	tab.Context, closeTab = chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	chromedp.ListenTarget(tab.Context, tab.note)
	if err := chromedp.Run(tab.Context, runtime.Enable(), log.Enable(), network.Enable()); err != nil {
		t.Fatalf("start %s: %v", chromium(), err)
	}
	// The browser must end before its profile is removed at the end of the test.
	t.Cleanup(func() { _ = chromedp.Cancel(tab.Context) })
	server.Announce(t, false, "browser: %s", chromium())
	return tab
}

// Run does what a user would do.
func (b *Tab) Run(t testing.TB, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b.Context, actions...); err != nil {
		t.Fatalf("%v; the browser's console: %q", err, b.Troubles())
	}
}

// Troubles returns the errors and warnings on the console so far.
func (b *Tab) Troubles() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.troubles...)
}

// Addresses returns the URLs requested so far.
func (b *Tab) Addresses() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.addresses...)
}

func (b *Tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.addresses = append(b.addresses, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles, e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.troubles = append(b.troubles, e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			var text []string
			for _, a := range e.Args {
				text = append(text, string(a.Value))
			}
			b.troubles = append(b.troubles, strings.Join(text, " "))
		}
	}
}

var errNoBrowser = errors.New("no browser for this test: install the package chromium")

// chromium returns the path of the browser, empty for none.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
