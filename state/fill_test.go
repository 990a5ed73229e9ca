package state

import (
	"fmt"
	"testing"
	"time"
)

func fillPlan(version string, keys ...string) *Plan {
	p := &Plan{Version: version, Retained: map[string]Retention{}, Topics: map[string][]string{}}
	for _, key := range keys {
		p.Retained[key], p.Topics[key] = Retention{}, []string{"t"}
	}
	return p
}

// A store that went back in time no longer has some plans, and a plan that is registered there again is the first with other
// columns than before. A process that works on the former fill must not move the progress of the new one.
func TestFillsOfAPlanWithOtherColumnsHaveOtherIDs(t *testing.T) {
	p, first, second := fillPlan("3", "aaaaa.x", "bbbbb.x", "ccccc.x"), fillPlan("1", "aaaaa.x"), fillPlan("2", "aaaaa.x", "bbbbb.x")
	was, is := NewFills(p, []*Plan{first, second})[0], NewFills(p, []*Plan{first})[0]
	if was.ID == is.ID {
		t.Errorf("fills of %v and of %v are both %s", was.Columns, is.Columns, is.ID)
	}
	if again := NewFills(p, []*Plan{first})[0]; again.ID != is.ID {
		t.Errorf("the same fill has the ID %s, the second time %s", is.ID, again.ID)
	}
}

// Only series that no other plan has are filled: the content of others is unknown.
func TestNewFills(t *testing.T) {
	before := fillPlan("1", "aaaaa.x", "bbbbb.x:col1")
	for name, c := range map[string]struct {
		plan   *Plan
		others []*Plan
		want   string
	}{
		"a first plan":          {before, nil, "map[]"},
		"a new series":          {fillPlan("2", "aaaaa.x", "ccccc.x"), []*Plan{before}, "map[t:[ccccc.x]]"},
		"a new column":          {fillPlan("2", "bbbbb.x:col1", "bbbbb.x:col2"), []*Plan{before}, "map[]"},
		"fields from elsewhere": {fillPlan("2", "aaaaa.y"), []*Plan{before}, "map[]"},
	} {
		units := map[string][]string{}
		for _, f := range NewFills(c.plan, c.others) {
			units = f.Columns
		}
		if got := fmt.Sprint(units); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	f := NewFills(fillPlan("2", "ccccc.x", "ddddd.x"), []*Plan{before})[0]
	for want, p := range map[Kept]*Plan{
		KeptAll: fillPlan("3", "ccccc.x", "ddddd.x", "eeeee.x"), KeptNone: before, KeptPart: fillPlan("4", "ccccc.x"),
	} {
		if got := f.In(p); got != want {
			t.Errorf("%s keeps %d of it, want %d", p.Version, got, want)
		}
	}
	if f.In(fillPlan("5", "ccccc.y")) != KeptPart {
		t.Error("a series with other columns is not kept in part")
	}
}

// A reader that reads state before history counts a fill as complete only if it was complete when the state was read.
func TestWholeFills(t *testing.T) {
	var w WholeFills
	h := &History{Fills: []FillEpoch{{Fill: &Fill{ID: "2"}, Topic: "t", Whole: true}}}
	at := time.UnixMilli(1000)
	w.Note(h, at)
	if got := w.At(h, at.Add(-1)); got == h || got.Fills[0].Whole || !h.Fills[0].Whole {
		t.Error("state from before the fill is reported as filled")
	}
	if w.At(h, at) != h {
		t.Error("state from after the fill is not reported as filled")
	}
	w.Note(&History{}, at.Add(time.Second)) // it was reverted
	w.Note(h, at.Add(2*time.Second))
	if w.At(h, at.Add(time.Second)).Fills[0].Whole {
		t.Error("a fill that was whole before is reported as whole again")
	}
}
