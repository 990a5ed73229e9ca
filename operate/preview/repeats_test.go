package preview

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// An event that comes again counts once, and the report says how many did.
func TestRepeatedEvents(t *testing.T) {
	registry := defined.Registry(t, `
streams:
  pay: {topic: payments, timestamp: at, id: id, dedup: 1m, fields: {user: string, n: int}}
features:
  pays: SUM(lifetime, pay, n, user, where='n * n * n > 0')
`)
	l := partition("payments", 0)
	for _, id := range []string{"a", "b", "a", "b", "c", "a"} {
		l.add(now-minute, `{"at":%d,"user":"u","id":%q,"n":1}`, now-minute, id)
	}
	l.add(now-minute, `{"at":%d,"user":"u","id":"d","n":9223372036854775807}`, now-minute) // poison, so not an event
	l.add(now-minute, `{"at":%d,"user":"u","id":"d","n":1}`, now-minute)
	report, err := Run(t.Context(), Config{
		Registry: registry, Features: registry.Features, Logs: []Log{l}, Now: now, Since: now - 10*minute, MaxRecords: 100, Examples: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	report.WriteText(&text)
	if f := feature(t, report, "pays"); report.Repeated != 3 || !strings.Contains(text.String(), "8 records since") ||
		!strings.Contains(text.String(), "4 used, 3 repeated") || !strings.Contains(string(f.Examples[0].Answer), `"value":4,`) {
		t.Errorf("got %+v\n%s\nwant 3 repeated and a sum of 4: %s", report, &text, f.Examples[0].Answer)
	}
}
