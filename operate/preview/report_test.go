package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// Whatever an event holds, an entity is one line of the text, and controls no terminal.
func TestEntitiesAreVisible(t *testing.T) {
	log := partition("logins", 0)
	log.add(now-minute, `{"at":%d,"user":"ann\u001b[2J\nbob","ip":"1"}`, now-minute)
	var text strings.Builder
	run(t, Config{Examples: 1}, log).WriteText(&text)
	if want := "\n  \"user=ann\\x1b[2J\\nbob\": 1 (of events: 1)\n"; !strings.Contains(text.String(), want) {
		t.Errorf("got\n%s\nwant a line\n%s", &text, want)
	}
}

// A feature by category leaves out events without one.
func TestEventsWithoutACategory(t *testing.T) {
	r := defined.Registry(t, `
streams:
  pay: {topic: payments, timestamp: at, fields: {user: string, shop: string, amount: decimal}}
features:
  paid: SUM(5m, pay, amount, user, per=shop)
`)
	u, decoder, log := newUse(r.Features[0]), r.NewDecoder(), partition("payments", 0)
	for _, event := range []string{`"user":"u","amount":1,"shop":"a"`, `"user":"u","amount":1`, `"user":"u"`, `"shop":"a"`} {
		log.add(now, `{"at":%d,%s}`, now, event)
	}
	for i := range log.records {
		events, err := decoder.Decode(&log.records[i])
		if err != nil {
			t.Fatal(err)
		}
		u.add(&events[0])
	}
	want := Used{Stream: "pay", Events: 4, NoKey: 1, NoValue: 1, NoCategory: 1}
	if diff := cmp.Diff(want, u.counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var text strings.Builder
	if u.counts.writeText(&text, r.Features[0].By); text.String() != "  of 4 events of pay, 1 without user, 1 without a value of its field, 1 without a category\n" {
		t.Errorf("got %s", &text)
	}
}
