package preview

import (
	"strings"
	"testing"
)

// Whatever an event holds, an entity is one line of the text, and controls no terminal.
func TestEntitiesAreVisible(t *testing.T) {
	log := partition("logins", 0)
	log.add(now-minute, `{"at":%d,"user":"ann\u001b[2J\nbob","ip":"1"}`, now-minute)
	var text strings.Builder
	if err := run(t, Config{Examples: 1}, log).WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if want := "\n  \"user=ann\\x1b[2J\\nbob\": 1 (of events: 1)\n"; !strings.Contains(text.String(), want) {
		t.Errorf("got\n%s\nwant a line\n%s", &text, want)
	}
}
