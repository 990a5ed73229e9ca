package generate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// The generated past is in order and contains all stories.
func TestPast(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	stories := Stories(now)
	past := Past(1, Demo(), now, 30*24*time.Hour, 5000, stories)
	if !slices.IsSortedFunc(past, func(a, b Event) int { return cmp.Compare(a.Timestamp, b.Timestamp) }) {
		t.Error("the events are not in the order of their records")
	}
	first, last := time.UnixMilli(past[0].Timestamp), time.UnixMilli(past[len(past)-1].Timestamp)
	if days := now.Sub(first).Hours() / 24; days < 28 || days > 30 || !last.Before(now) {
		t.Errorf("the events span %v to %v, want 28 to 30 days", first, last)
	}
	listed := 0
	for _, s := range stories {
		listed += len(s.Events)
		for _, e := range s.Events {
			if e.Timestamp >= now.UnixMilli() || !json.Valid(e.Value) || e.Poison {
				t.Errorf("%s: an event is poison, no JSON or not in the past: %s at %d", s.Name, e.Value, e.Timestamp)
			}
		}
	}
	ids, n := map[string]bool{}, 0
	for _, e := range past {
		var event struct {
			ID   string `json:"event_id"`
			User string `json:"user_id"`
		}
		if err := json.Unmarshal(e.Value, &event); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(event.User, "u9") {
			continue
		}
		if n++; ids[event.ID] {
			t.Errorf("two events of stories have the ID %s", event.ID)
		}
		ids[event.ID] = true
	}
	if n != listed {
		t.Errorf("%d events of stories, want %d", n, listed)
	}
}
