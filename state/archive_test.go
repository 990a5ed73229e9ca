package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each event is on one side of a cut, by its time or by its offset.
func TestCut(t *testing.T) {
	c := Cut{Topic: "t", Until: 100}
	for at, want := range map[int64]bool{99: false, 100: true, 101: true, -5: false} {
		if c.Boundary().Logged(at, &RecordOffset{}) != want || c.FromFile(at) == want {
			t.Errorf("an event at %d counts in the log: %v, want %v", at, !want, want)
		}
	}
	by := Cut{Topic: "t", Until: 100, Ends: Ends{10: 7, 2: 5}.Text(), Log: "here"}
	for at, want := range map[RecordOffset]bool{
		{2, 4, "here"}: false, {2, 5, "here"}: true, {10, 6, "here"}: false, {10, 7, ""}: true, {10, 6, ""}: false,
		{3, 0, "here"}:    true, // the files have nothing of this partition
		{2, 4, "another"}: true,
	} {
		if by.Boundary().Logged(99, &at) != want || !by.FromFile(101) {
			t.Errorf("a record at %v counts in the log: %v, want %v", at, !want, want)
		}
	}
	var none *Cut
	if !none.Boundary().Logged(0, &RecordOffset{}) {
		t.Error("without a cut an event does not count")
	}
	ids := map[string]bool{}
	for _, other := range []Cut{c, by, {Topic: "t", Until: 101}, {Topic: "t", Until: 100, Ends: "2:5"}, {Topic: "t", Until: 100, Ends: "2:5", Log: "x"}} {
		ids[other.ID()] = true
	}
	if len(ids) != 5 {
		t.Error("two cuts have the same name")
	}
	if ends, err := ParseEnds(by.Ends); err != nil || len(ends) != 2 || ends[10] != 7 || by.Ends != "2:5 10:7" {
		t.Errorf("%q was parsed as %v, error %v", by.Ends, ends, err)
	}
	for _, bad := range []string{"1", "1:", ":1", "1:x", "a:1", "1:2 3"} {
		if _, err := ParseEnds(bad); err == nil || !strings.HasSuffix(err.Error(), "is not the offset at which a partition is cut") {
			t.Errorf("%q: got error %v", bad, err)
		}
	}
}

// Files are registered once, by content and not by name. Another cut replaces the first, which can be registered again.
func TestNewArchive(t *testing.T) {
	cut, other := Cut{Topic: "t", Until: 100}, Cut{Topic: "t", Until: 200}
	a, b := ArchivedFile{Name: "a", Stream: "s", Hash: "1", Rows: 3}, ArchivedFile{Name: "b", Stream: "s", Hash: "2", Rows: 4}
	renamed, elsewhere := a, a
	renamed.Name, elsewhere.Stream = "c", "r"
	var known []*Archive
	add := func(draft Archive, want string) {
		t.Helper()
		got := "nothing"
		if added := NewArchive(draft, known); added != nil {
			known = append(known, added)
			got = fmt.Sprint(added.Number, " ", added.Rows())
		}
		if got != want {
			t.Errorf("added %s, want %s", got, want)
		}
	}
	expect := func(cut Cut, since int64, want string, files ...ArchivedFile) {
		t.Helper()
		add(Archive{Cut: cut, Since: since, Files: files}, want)
	}
	expect(cut, 10, "1 3", a, renamed)
	expect(cut, 10, "nothing", a)
	expect(cut, 10, "nothing", renamed)
	expect(cut, 20, "nothing", a)
	expect(cut, 5, "2 0", a) // they reach further back than was stated
	expect(cut, 5, "3 4", a, b)
	expect(cut, 5, "4 3", elsewhere)
	expect(other, 5, "5 7", a, b)
	if now := CutOf("t", known); *now != other {
		t.Errorf("the cut is %+v, want %+v", now, other)
	}
	expect(cut, 5, "6 0", a, b)
	if now := CutOf("t", known); *now != cut || CutOf("u", known) != nil {
		t.Errorf("the cut is %+v, want %+v", now, cut)
	}
	whole := func(want int64, isStated bool) {
		t.Helper()
		if since, stated := WholeSince(cut, known); since != want || stated != isStated {
			t.Errorf("the files have everything since %d, stated %v; want %d, %v", since, stated, want, isStated)
		}
	}
	whole(5, false)
	if of := ArchivesOf(cut, known); len(of) != 5 || of[0] != known[0] || of[4] != known[5] {
		t.Errorf("unexpected archives of the cut %+v", of)
	}
	add(Archive{Cut: cut, Since: 5, Stated: true}, "7 0")
	whole(5, true)
	add(Archive{Cut: cut, Since: 5, Stated: true}, "nothing")
	c := ArchivedFile{Name: "c", Stream: "s", Hash: "3", Rows: 1}
	expect(cut, 4, "nothing", a)
	expect(cut, 4, "8 1", c) // its first event does not contradict the statement
	whole(5, true)
	add(Archive{Cut: cut, Since: MinTime, Stated: true}, "9 0")
	whole(MinTime, true)
}

// archived registers a file before a cut.
func (n *namespace) archived(until int64) *Cut {
	a := NewArchive(Archive{Cut: Cut{Topic: "t", Until: until}, Since: MinTime, Files: []ArchivedFile{{Hash: "1", Rows: 5}}}, n.Archives)
	n.Archives = append(n.Archives, a)
	return &a.Cut
}

// Definitions that reach back before a cut get a generation over it. The old generations are kept until log and files
// are applied. Other definitions do not change.
func TestBindOverACut(t *testing.T) {
	n := newNamespace()
	n.Now += MaxAhead.Milliseconds()
	definitions := generationPlan("1", 10_000, "aaaaa.x", "bbbbb.x")
	definitions.Retained["bbbbb.x"] = Retention{Keep: 10}
	n.take(definitions)
	cut := n.archived(n.Now - 1000 - MaxAhead.Milliseconds())
	over := Generation{Cut: cut.ID(), Number: 1}
	expect := func(want string) *Plan {
		t.Helper()
		p := n.take(definitions)
		if got := fmt.Sprint(p.Generations); got != want {
			t.Fatalf("generations %s, want %s", got, want)
		}
		return p
	}
	p := expect(fmt.Sprintf("map[aaaaa:[0 %s]]", over))
	if got := p.CutOf(over); got == nil || *got != *cut || p.CutOf(Generation{}) != nil {
		t.Errorf("the generation has the cut %+v, want %+v", got, cut)
	}
	n.fill()
	expect(fmt.Sprintf("map[aaaaa:[0 %s]]", over)) // files are missing
	n.History.Fills[0].Archived = true
	expect(fmt.Sprintf("map[aaaaa:[%s]]", over))
	again := n.archived(cut.Until + 1)
	next := Generation{Cut: again.ID(), Number: 2}
	expect(fmt.Sprintf("map[aaaaa:[%s %s]]", over, next))
	n.Now += 30_000 + MaxAhead.Milliseconds() // no question reaches back before the cuts any more
	if got := fmt.Sprint(Bind(generationPlan("2", 10_000, "ccccc.x"), &n.Known).Generations); got != "map[]" {
		t.Errorf("new definitions have the generations %s, want none", got)
	}
}

// State that claims to reach back further than the files is kept beside the state with the files, unless an operator
// stated from when on the files have all events.
func TestFilesThatReachBackLess(t *testing.T) {
	n := newNamespace()
	lifetime := generationPlan("1", 0, "aaaaa.x")
	n.take(lifetime)
	cut := Cut{Topic: "t", Until: n.Now - 1000}
	n.Archives = []*Archive{NewArchive(Archive{Cut: cut, Since: 7}, nil)}
	n.take(lifetime)
	n.fill()
	n.History.Fills[0].Archived, n.History.Fills[0].ArchivedSince = true, 7
	over := Generation{Cut: cut.ID(), Number: 1}
	expect := func(want string) {
		t.Helper()
		if got := fmt.Sprint(Bind(lifetime, &n.Known).Generations); got != want {
			t.Errorf("generations %s, want %s", got, want)
		}
	}
	both, files := fmt.Sprintf("map[aaaaa:[0 %s]]", over), fmt.Sprintf("map[aaaaa:[%s]]", over)
	expect(both)
	n.Archives = append(n.Archives, NewArchive(Archive{Cut: cut, Since: 7, Stated: true}, n.Archives))
	expect(files)
	n.History.Fills[0].Since = cut.Until + 1 // the log begins after the end of the files, which nobody stated
	expect(both)
}

// The first plan of a namespace fills nothing from the log, only from files.
func TestFirstPlanOverACut(t *testing.T) {
	n := newNamespace()
	cut := n.archived(n.Now)
	p := n.take(generationPlan("1", 0, "aaaaa.x"))
	id := GenerationID("aaaaa", Generation{Cut: cut.ID()})
	fills := NewFills(p, nil)
	if len(fills) != 1 || *fills[0].Cut != *cut || fmt.Sprint(fills[0].Columns) != fmt.Sprintf("map[t:[%s.x]]", id) {
		t.Errorf("unexpected fills %+v", fills)
	}
	part := fillPlan("2", id+".x")
	if f := (&Fill{ID: "f", Columns: map[string][]string{"t": {id + ".x", "ccccc.x"}}, Cut: cut}).Part(part); f == nil || f.Cut != cut {
		t.Errorf("the part %+v does not have the cut", f)
	}
}

// Series over a cut are complete from the files' first moment on, once the files are applied and the log continues
// where they end.
func TestCompleteSinceOverACut(t *testing.T) {
	cut := &Cut{Topic: "t", Until: 100}
	r := Retained{Key: "aaaaa.x", Topic: "t", Cut: cut}
	fill := &Fill{ID: "f", Columns: map[string][]string{"t": {"aaaaa.x"}}, Cut: cut}
	h := &History{
		PlanEpochs: []PlanEpoch{{Topic: "t", Version: "old", Last: 500}, {Topic: "t", Version: "new", Last: MaxTime}},
		Plans:      map[string]*Plan{"old": fillPlan("old"), "new": fillPlan("new", "aaaaa.x")},
	}
	for _, c := range []struct {
		what            string
		whole, archived bool
		since           int64 // of the log
		gap             int64
		want            int64
	}{
		{"nothing is in", false, false, 100, 0, 501},
		{"the log is in", true, false, 100, 0, 100},
		{"all of a log that has everything is in", true, false, MinTime, 0, 100},
		{"the files are in", false, true, 100, 0, 501},
		{"both are in", true, true, 100, 0, 7},
		{"the log begins after the cut", true, true, 101, 0, 101},
		{"a gap before the cut", true, true, 100, 98, 7},
		{"a gap that reaches behind the cut", true, true, 100, 100, 101},
	} {
		h.Fills = []FillEpoch{{Fill: fill, Topic: "t", Whole: c.whole, Archived: c.archived, Since: c.since, ArchivedSince: 7}}
		epochs := h.PlanEpochs
		if c.gap > 0 {
			h.PlanEpochs = append(slices.Clone(epochs), PlanEpoch{Topic: "t", Version: Gap, Last: c.gap})
		}
		if got := h.CompleteSince([]Retained{r}); got != c.want {
			t.Errorf("%s: complete since %d, want %d", c.what, got, c.want)
		}
		h.PlanEpochs = epochs
	}
	h.PlanEpochs = h.PlanEpochs[1:]
	h.Fills = nil // unknown, because a master does not answer
	if got := h.CompleteSince([]Retained{r}); got != 100 {
		t.Errorf("complete since %d without a fill, want 100", got)
	}
	h.Fills = []FillEpoch{{Fill: fill, Topic: "t", Whole: true, Archived: true, ArchivedSince: 7, Since: MinTime}}
	h.Plans["short"] = fillPlan("short", "aaaaa.x")
	h.Plans["short"].Retained["aaaaa.x"] = Retention{Keep: 5}
	h.PlanEpochs = append(h.PlanEpochs, PlanEpoch{Topic: "t", Version: "short", Last: 60})
	if got := h.CompleteSince([]Retained{r}); got != 61 {
		t.Errorf("complete since %d, want 61: a plan kept less until 60", got)
	}
}

// Where a log continues at offsets, a moment says nothing about what it has behind them: one row of the files may be dated far ahead.
func TestCompleteSinceOverACutByOffsets(t *testing.T) {
	const ahead = 100_000
	cut := &Cut{Topic: "t", Until: ahead, Ends: "0:5"}
	r := Retained{Key: "aaaaa.x", Topic: "t", Cut: cut}
	fill := &Fill{ID: "f", Columns: map[string][]string{"t": {"aaaaa.x"}}, Cut: cut}
	for _, c := range []struct {
		what            string
		whole, archived bool
		since, gap      int64 // of the log
		want            int64
	}{
		{"nothing is in", false, false, MinTime, 0, ahead},
		{"the log is in", true, false, MinTime, 0, ahead},
		{"the files are in", false, true, MinTime, 0, 501},
		{"both are in", true, true, MinTime, 0, 7},
		{"the log begins behind the offsets", true, true, 101, 0, 101},
		{"a gap", true, true, MinTime, 300, 301},
	} {
		h := &History{
			PlanEpochs: []PlanEpoch{{Topic: "t", Version: "old", Last: 500}, {Topic: "t", Version: "new", Last: MaxTime}},
			Plans:      map[string]*Plan{"old": fillPlan("old"), "new": fillPlan("new", "aaaaa.x")},
			Fills:      []FillEpoch{{Fill: fill, Topic: "t", Whole: c.whole, Archived: c.archived, Since: c.since, ArchivedSince: 7}},
		}
		if c.gap > 0 {
			h.PlanEpochs = append(h.PlanEpochs, PlanEpoch{Topic: "t", Version: Gap, Last: c.gap})
		}
		if got := h.CompleteSince([]Retained{r}); got != c.want {
			t.Errorf("%s: complete since %d, want %d", c.what, got, c.want)
		}
	}
}

// A reader that read the state first counts files as applied only if they were by then.
func TestWholeFillsOverACut(t *testing.T) {
	var w WholeFills
	h := &History{Fills: []FillEpoch{{Fill: &Fill{ID: "f", Cut: &Cut{}}, Topic: "t", Whole: true}}}
	at := time.UnixMilli(1000)
	w.Note(h, at)
	h.Fills[0].Archived = true
	w.Note(h, at.Add(time.Second))
	if got := w.At(h, at); !got.Fills[0].Whole || got.Fills[0].Archived {
		t.Errorf("want a whole fill that is not archived, got %+v", got.Fills[0])
	}
	if w.At(h, at.Add(time.Second)) != h {
		t.Error("state from after the fill is not reported as filled")
	}
}

func TestGenerationText(t *testing.T) {
	for text, want := range map[string]Generation{"0": {}, "12": {Number: 12}, "3/abc": {Number: 3, Cut: "abc"}} {
		var got Generation
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want || got.String() != text {
			t.Errorf("%s was parsed as %+v, error %v", text, got, err)
		}
	}
	if err := new(Generation).UnmarshalText([]byte("x/abc")); err == nil {
		t.Error("x/abc was accepted as a generation")
	}
}
