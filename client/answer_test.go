package client

import (
	"encoding/json"
	"slices"
	"testing"
)

// A rule may use a value of few statuses only, and no status that a later server adds.
func TestKnown(t *testing.T) {
	known := []Status{Present, NullValue, NotFound}
	for _, s := range append(slices.Clone(Statuses), "A_LATER_ONE", "") {
		want := slices.Contains(known, s)
		for _, text := range []string{"3", "null"} {
			if f := (Feature{Value: Value{json.RawMessage(text)}, Status: s}); f.Known() != want {
				t.Errorf("%s with the status %q: known %v, want %v", text, s, f.Known(), want)
			}
		}
		if m := (Member{Met: Value{json.RawMessage("false")}, Status: s}); m.Known() != want {
			t.Errorf("a member with the status %q: known %v, want %v", s, m.Known(), want)
		}
	}
	for text, want := range map[string]bool{
		`[{"member":1,"value":true,"status":"PRESENT"},{"member":2,"value":false,"status":"NOT_FOUND"}]`: true,
		`[{"member":1,"value":true,"status":"PRESENT"},{"member":2,"value":null,"status":"PRESENT"}]`:    false,
		`[{"member":1,"value":true,"status":"INCOMPLETE"}]`:                                              false,
		`[]`: false,
	} {
		var f Feature
		if err := json.Unmarshal([]byte(`{"members":`+text+`}`), &f); err != nil {
			t.Fatal(err)
		}
		if f.Known() != want {
			t.Errorf("the feature with members %s: known %v, want %v", text, f.Known(), want)
		}
	}
}
