package materialize

import (
	"fmt"
	"strings"
	"testing"
)

// Entities are replayed one after another, each in its own time: events that are far ahead in the same block do not
// make another entity's events too old.
func TestEntitiesInABlock(t *testing.T) {
	event := func(day, user, id string) string {
		return `{"at":"2026-` + day + ` 10:00:00","kind":{"name":"pay"},"meta":{"id":"` + id + `"},"who":{"user":"` + user + `","device":"d"},"amount":1}` + "\n"
	}
	var in strings.Builder
	want := "meta.id,paid\n"
	for i := range 4 { // blocks of the tests have five moments
		user := fmt.Sprint("u", i)
		in.WriteString(event("01-01", user, user))
		want += user + ",1\n"
	}
	in.WriteString(event("12-01", "late", "late"))
	want += "late,1\n"
	got, _, err := materialize(t, load(t, definitions), "pay", "ndjson", in.String(), "paid")
	if err != nil || got != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}
