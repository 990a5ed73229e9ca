package state

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// generationPlan keeps columns of a series for a time.
func generationPlan(version string, keep int64, keys ...string) *Plan {
	p := fillPlan(version, keys...)
	for key := range p.Retained {
		p.Retained[key] = Retention{Keep: keep}
	}
	return p
}

// namespace is the history of plans in a topic t, one after another.
type namespace struct {
	Known
}

func newNamespace() *namespace {
	return &namespace{Known: Known{Plans: map[string]*Plan{}, Fills: map[string]*Fill{}, History: &History{Newest: 1_000_000, Now: 1_000_000}, Now: 1_000_000}}
}

// take binds definitions and applies the plan to the topic.
func (n *namespace) take(definitions *Plan) *Plan {
	n.History.Newest, n.History.Now = n.Now, n.Now
	p := Bind(definitions, &n.Known)
	if n.Plans[p.Version] == nil {
		var others []*Plan
		for _, other := range n.Plans {
			others = append(others, other)
		}
		for _, f := range NewFills(p, others) {
			n.Fills[f.ID] = f
			n.History.Fills = append(n.History.Fills, FillEpoch{Fill: f, Topic: "t", Since: MinTime})
		}
		n.Plans[p.Version] = p
	}
	for i := range n.History.Fills {
		f := &n.History.Fills[i]
		if part := f.Fill.Part(p); part != nil && n.Fills[part.ID] == nil {
			n.Fills[part.ID] = part
			n.History.Fills = append(n.History.Fills, FillEpoch{Fill: part, Topic: "t", Since: MinTime, Whole: f.Whole})
		}
		f = &n.History.Fills[i]
		f.Broken = f.Broken || f.Fill.In(p) == KeptPart
		f.Whole = f.Whole && !f.Broken
	}
	epochs := n.History.PlanEpochs
	for i := range epochs {
		if epochs[i].Last == MaxTime {
			epochs[i].Last = n.Now
		}
	}
	for i := range epochs {
		if epochs[i].Version == p.Version {
			epochs[i].Last = MaxTime
			return p
		}
	}
	n.History.PlanEpochs = append(epochs, PlanEpoch{Topic: "t", Version: p.Version, Last: MaxTime})
	n.History.Plans = n.Plans
	return p
}

// fill completes everything that is to be filled.
func (n *namespace) fill() {
	for i := range n.History.Fills {
		n.History.Fills[i].Whole = !n.History.Fills[i].Broken
	}
}

// If definitions need more of a series than it has, a new generation is kept beside the old one
// until it is complete.
func TestBind(t *testing.T) {
	const hour = 3600_000
	short := generationPlan("short", hour, "aaaaa.x:col1")
	for name, more := range map[string]*Plan{
		"a longer past": generationPlan("more", 5*hour, "aaaaa.x:col1"),
		"forever":       generationPlan("more", 0, "aaaaa.x:col1"),
		"a column more": generationPlan("more", hour, "aaaaa.x:col1", "aaaaa.x:col2"),
		"more values":   {Version: "more", Retained: map[string]Retention{"aaaaa.x:col1": {Keep: hour, Max: 5}}, Topics: short.Topics},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamespace()
			expect := func(p *Plan, want string) {
				t.Helper()
				if got := fmt.Sprint(n.take(p).Generations); got != want {
					t.Fatalf("generations %s, want %s", got, want)
				}
			}
			expect(short, "map[]")
			expect(more, "map[aaaaa:[0 1]]")
			expect(more, "map[aaaaa:[0 1]]") // again: nothing changes
			expect(short, "map[]")           // back to what has everything
			expect(more, "map[aaaaa:[0 1]]")
			n.fill()
			expect(more, "map[aaaaa:[1]]")
			expect(short, "map[aaaaa:[1]]") // the old one is no longer written
			expect(more, "map[aaaaa:[1 2]]")
			n.fill()
			expect(more, "map[aaaaa:[2]]")
		})
	}
}

// State that definitions lacked for a moment is kept beside its replacement until that is filled, and read: it lacks that
// moment only.
func TestBindComesBack(t *testing.T) {
	with, without := generationPlan("with", 5000, "aaaaa.x"), generationPlan("without", 5000, "ccccc.x")
	n := newNamespace()
	n.take(with)
	n.take(without)
	n.Now += 1000
	if p := n.take(with); fmt.Sprint(p.Generations) != "map[aaaaa:[0 1]]" {
		t.Fatalf("the generations are %v, want the first one and a new one", p.Generations)
	}
	best := func() int {
		return n.History.Best("aaaaa", n.History.Serving(with), []Retained{{Key: "aaaaa.x", Topic: "t", Retention: Retention{Keep: 5000}}}).Number
	}
	if got := best(); got != 0 {
		t.Errorf("generation %d is read, want the first, which lacks a second", got)
	}
	n.fill()
	if got := best(); got != 1 {
		t.Errorf("generation %d is read once the new one is whole, want 1", got)
	}
	if p := n.take(with); fmt.Sprint(p.Generations) != "map[aaaaa:[1]]" {
		t.Errorf("the generations are %v once the new one is whole, want that alone", p.Generations)
	}
	n.take(without)
	n.Now += lately + 1 // the state may have been dropped
	if p := n.take(with); fmt.Sprint(p.Generations) != "map[aaaaa:[1]]" && fmt.Sprint(p.Generations) != "map[aaaaa:[2]]" {
		t.Errorf("the generations are %v after a long time without, want one", p.Generations)
	}
}

// Of a generation that stays, what is both needed and there is kept, for as long as it is needed now.
func TestBindKeepsOnlyNeededState(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x:col1", "aaaaa.x:old", "bbbbb.x"))
	p := n.take(generationPlan("2", 5000, "aaaaa.x:col1", "aaaaa.x:new", "bbbbb.y"))
	a, b := GenerationID("aaaaa", Generation{Number: 1}), GenerationID("bbbbb", Generation{Number: 1})
	want := fmt.Sprint(map[string]Retention{
		"aaaaa.x:col1": {Keep: 5000}, a + ".x:col1": {Keep: 5000}, a + ".x:new": {Keep: 5000},
		b + ".y": {Keep: 5000}, // written from another topic: the old one is of no use
	})
	if got := fmt.Sprint(p.Retained); got != want {
		t.Errorf("the plan keeps %s, want %s", got, want)
	}
	if p.Definitions() != "2" || p.Version == "2" {
		t.Errorf("the version is %s, want one of definitions 2 with another name", p.Version)
	}
	for key := range p.Retained {
		if !slices.Equal(p.Topics[key], []string{"t"}) {
			t.Errorf("%s has the topics %q, want t", key, p.Topics[key])
		}
	}
}

// If the log no longer has what a new generation needs, the old one is kept while it reaches back further.
func TestBindKeepsAGenerationThatReachesFurther(t *testing.T) {
	capped := func(keep int64, most int) *Plan {
		p := generationPlan(fmt.Sprintf("%d %d", keep, most), keep, "aaaaa.x")
		p.Retained["aaaaa.x"] = Retention{Keep: keep, Max: most}
		return p
	}
	for name, c := range map[string]struct {
		keep, since, pass int64
		want              string
	}{
		"all is there":          {1000, 998_000, 0, "map[aaaaa:[1]]"},
		"a part is there":       {1000, 999_400, 0, "map[aaaaa:[0 1]]"},
		"its window has passed": {1000, 999_400, 500, "map[aaaaa:[1]]"},
		"forever, a part":       {0, 999_400, 1 << 40, "map[aaaaa:[0 1]]"},
		"forever, all is there": {0, MinTime, 0, "map[aaaaa:[1]]"},
	} {
		n := newNamespace()
		n.take(capped(c.keep, 5))
		n.take(capped(c.keep, 6))
		n.fill()
		n.History.Fills[0].Since = c.since
		n.Now += c.pass
		if got := fmt.Sprint(n.take(capped(c.keep, 6)).Generations); got != c.want {
			t.Errorf("%s: generations %s, want %s", name, got, c.want)
		}
	}

	// An old generation that reaches back no further is of no use.
	n := newNamespace()
	n.take(capped(1000, 5))
	n.take(capped(1000, 6))
	n.fill()
	n.History.Fills[0].Since = n.Now - 600
	n.History.PlanEpochs = append(n.History.PlanEpochs, PlanEpoch{Topic: "t", Version: Gap, Last: n.Now - 500})
	if got := fmt.Sprint(n.take(capped(1000, 6)).Generations); got != "map[aaaaa:[1]]" {
		t.Errorf("both have a gap: generations %s, want map[aaaaa:[1]]", got)
	}
}

// Of generations that have everything, the one that reaches back furthest is kept: rolling definitions back does not
// make state that was always there complete since a later moment only.
func TestBindKeepsTheGenerationThatReachesFurthest(t *testing.T) {
	capped := func(version string, most int) *Plan {
		p := generationPlan(version, 1000, "aaaaa.x")
		p.Retained["aaaaa.x"] = Retention{Keep: 1000, Max: most}
		return p
	}
	before, after := capped("before", 5), capped("after", 6)
	n := newNamespace()
	n.take(before)
	n.take(after)
	n.Now += 2*1000 + MaxAhead.Milliseconds() + 1 // the new generation has all that can be asked under the old definitions
	if got := fmt.Sprint(n.take(before).Generations); got != "map[]" {
		t.Errorf("after a rollback the generations are %s, want the first one alone", got)
	}
	if got := n.History.CompleteSince([]Retained{{Key: "aaaaa.x", Topic: "t", Retention: Retention{Keep: 1000}}}); got != MinTime {
		t.Errorf("the series was always kept, but is complete only since %d", got)
	}
}

// Records that were skipped before the period that questions reach back to do not matter.
func TestBindForgets(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x"))
	n.take(generationPlan("2", 1000, "ccccc.x"))
	n.Now += 2*1000 + MaxAhead.Milliseconds()
	again := generationPlan("1", 1000, "aaaaa.x")
	if p := Bind(again, &n.Known); fmt.Sprint(p.Generations) != "map[aaaaa:[1]]" {
		t.Errorf("generations %v: records that have passed are still required", p.Generations)
	}
	n.History.PlanEpochs[1].Last = 1_000_000
	n.History.PlanEpochs = append(n.History.PlanEpochs, PlanEpoch{Topic: "t", Version: "1", Last: MaxTime})
	n.Now++
	if p := Bind(again, &n.Known); len(p.Generations) > 0 {
		t.Errorf("generations %v: the skipped records are not considered", p.Generations)
	}
}

// A fill that was given up is started again in another generation.
func TestBindAfterABrokenFill(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x"))
	more := generationPlan("2", 1000, "aaaaa.x", "ccccc.x")
	n.take(more)
	n.History.Fills[0].Broken = true
	if p := n.take(more); fmt.Sprint(p.Generations) != "map[ccccc:[0 1]]" && fmt.Sprint(p.Generations) != "map[ccccc:[1]]" {
		t.Errorf("after a broken fill the generations are %v, want 1, or 0 and 1", p.Generations)
	}
}

// What has expired early is filled again in another generation, which is whole although the clock was ahead before; until then the
// first one answers. What is kept for longer, what nobody can ask for any more, and what never expires are not filled again.
func TestBindAfterAClockWasAhead(t *testing.T) {
	const keep, slack = 1000, 100
	n := newNamespace()
	n.History.Lag, n.History.Slack = new(int64), slack
	kept := generationPlan("1", keep, "aaaaa.x")
	kept.Retained["ccccc.x"], kept.Topics["ccccc.x"] = Retention{Keep: 5 * keep}, []string{"t"}
	kept.Retained["ddddd.x"], kept.Topics["ddddd.x"] = Retention{}, []string{"t"}
	expect := func(when, want string) {
		t.Helper()
		if got := fmt.Sprint(n.take(kept).Generations); got != want {
			t.Errorf("%s, the generations are %s, want %s", when, got, want)
		}
	}
	since := func() int64 {
		column := []Retained{{Key: "aaaaa.x", Topic: "t", Retention: Retention{Keep: keep}}}
		serving := n.History.Serving(kept)
		return n.History.CompleteSince(serving.RetainedIn("aaaaa", n.History.Best("aaaaa", serving, column), column))
	}
	ahead := func(by int64) Ahead { return Ahead{Clock: n.Now + by, Newest: n.Now} }
	expect("at first", "map[]")
	n.History.Ahead = ahead(slack)
	expect("after a clock was ahead by the slack", "map[]")
	noticed := n.Now
	n.History.Ahead = ahead(slack + 2*keep)
	expect("after a clock was ahead by more than one is kept", "map[aaaaa:[0 1] ccccc:[0 1]]")
	expect("again", "map[aaaaa:[0 1] ccccc:[0 1]]")
	if got := since(); got != noticed+1 {
		t.Errorf("it is complete since %d while it is filled, want %d", got, noticed+1)
	}
	forever := []Retained{{Key: "ddddd.x", Topic: "t", Retention: Retention{Keep: keep}}}
	if got := n.History.CompleteSince(forever); got != MinTime {
		t.Errorf("a column that is kept forever is complete since %d for a feature that needs less", got)
	}
	n.fill()
	if got := since(); got != MinTime {
		t.Errorf("it is complete since %d once it is filled", got)
	}
	expect("once both are filled", "map[aaaaa:[1] ccccc:[1]]")
	for i := range n.History.Fills {
		n.History.Fills[i].Ahead = ahead(slack + 2*keep)
	}
	n.Now += keep + 1
	expect("after it happened again, and the window of one has passed", "map[aaaaa:[1] ccccc:[1 2]]")
}

// lose forgets a plan and its fills, as a server that goes back in time does.
func (n *namespace) lose(version string) {
	delete(n.Plans, version)
	n.Fills = map[string]*Fill{}
	n.History.Fills = nil
}

// What only a lost plan kept is not taken for new.
func TestBindAfterAPlanIsLost(t *testing.T) {
	first := generationPlan("1", 1000, "aaaaa.x:col1")
	second := generationPlan("2", 1000, "aaaaa.x:col1", "aaaaa.x:col2", "bbbbb.x")
	third := generationPlan("3", 1000, "aaaaa.x:col1", "aaaaa.x:col2", "aaaaa.x:col3", "bbbbb.x")
	lost := func() (*namespace, *Plan) {
		n := newNamespace()
		n.take(first)
		p := n.take(second)
		n.lose(p.Version)
		return n, p
	}
	n, before := lost()
	p := n.take(third)
	for _, series := range []string{"aaaaa", "bbbbb"} {
		target := p.GenerationsOf(series)[len(p.GenerationsOf(series))-1]
		if id := GenerationID(series, target); before.keeps(id) || !p.keeps(id) {
			t.Errorf("%s: generation %v of the lost plan is filled as a new one", series, target)
		}
	}
	other, _ := lost()
	if again := other.take(third); again.Version != p.Version {
		t.Errorf("two processes make the plans %s and %s", p.Version, again.Version)
	}
	n = newNamespace()
	n.take(first)
	placed := Bind(second, &n.Known) // by an operator, and not registered
	n.History.PlanEpochs = append(n.History.PlanEpochs, PlanEpoch{Topic: "u", Version: placed.Version, Last: MaxTime})
	if p := Bind(second, &n.Known); p.Version != placed.Version {
		t.Errorf("after a partition was placed under %s, the plan is %s", placed.Version, p.Version)
	}
	n = newNamespace()
	n.take(first)
	n.lose("1")
	if p := n.take(second); len(p.Generations) > 0 || len(n.Fills) > 0 {
		t.Errorf("without any plan, generations are %v with %d fills; want the first ones to go on", p.Generations, len(n.Fills))
	}
}

// Whatever plans are taken and lost, no state is filled that a plan has written.
func TestOnlyNewStateIsFilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := newNamespace()
		written, taken := map[string]bool{}, map[string]bool{} // series, and versions
		for range rapid.IntRange(2, 12).Draw(t, "changes") {
			var keys []string
			for _, key := range []string{"aaaaa.x:col1", "aaaaa.x:col2", "bbbbb.x", "ccccc.x"} {
				if rapid.Bool().Draw(t, key) {
					keys = append(keys, key)
				}
			}
			keep := rapid.SampledFrom([]int64{1000, 5000, 0}).Draw(t, "keep")
			before := maps.Clone(n.Fills)
			p := n.take(generationPlan(fmt.Sprint(keys, keep), keep, keys...))
			for id, f := range n.Fills {
				for _, columns := range f.Columns {
					for _, key := range columns {
						if before[id] == nil && written[seriesOf(key)] && !taken[p.Version] && f.In(p) == KeptAll && !partOf(f, before) {
							t.Fatalf("%s is filled, which a plan has written", key)
						}
					}
				}
			}
			taken[p.Version] = true
			for _, series := range p.Series() {
				written[series] = true
			}
			if rapid.Bool().Draw(t, "filled") {
				n.fill()
			}
			if rapid.IntRange(0, 2).Draw(t, "lost") == 0 {
				n.lose(p.Version)
			}
			n.Now += 100
		}
	})
}

// partOf reports whether a fill goes on with a part of others.
func partOf(f *Fill, others map[string]*Fill) bool {
	for _, other := range others {
		if f.PartOf(other) {
			return true
		}
	}
	return false
}

// The most complete generation is read, and the last one among those that have everything.
func TestBestGeneration(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x"))
	n.take(generationPlan("2", 5000, "aaaaa.x"))
	serving := n.History.Serving(generationPlan("2", 5000, "aaaaa.x"))
	best := func(keep int64) int {
		return n.History.Best("aaaaa", serving, []Retained{{Key: "aaaaa.x", Topic: "t", Retention: Retention{Keep: keep}}}).Number
	}
	if got := best(1000); got != 0 {
		t.Errorf("generation %d is read for state that was always kept, want 0", got)
	}
	if got := best(5000); got != 0 {
		t.Errorf("generation %d is read for state that is kept for longer now, want 0 while the new one has less", got)
	}
	n.fill()
	if got := best(5000); got != 1 {
		t.Errorf("generation %d is read once the new one is whole, want 1", got)
	}
	if got := best(1000); got != 1 {
		t.Errorf("generation %d is read when both are whole, want 1", got)
	}
}

// A series that gets another topic is filled from all of its topics, in a new generation. A cut, which divides the
// events of one topic, does not divide those of several, also where a generation over it has all events that can be
// asked for.
func TestBindSeveralTopics(t *testing.T) {
	n := newNamespace()
	cut := Cut{Topic: "t", Until: 10}
	n.Archives = []*Archive{{ID: "a", Cut: cut}}
	over := n.take(generationPlan("one", 0, "aaaaa.x"))
	if len(over.Cuts) != 1 {
		t.Fatalf("the series of one topic is over the cuts %v, want one", over.Cuts)
	}
	two := generationPlan("two", 0, "aaaaa.y")
	two.Topics["aaaaa.y"] = []string{"t", "u"}
	p := Bind(two, &n.Known)
	generations := p.GenerationsOf("aaaaa")
	if len(generations) != 1 || generations[0].Number == 0 || generations[0].Cut != "" {
		t.Fatalf("the generations are %+v, want a new one without a cut", generations)
	}
	key := GenerationID("aaaaa", generations[0]) + ".y"
	fills := NewFills(p, []*Plan{over})
	if len(fills) != 1 || fmt.Sprint(fills[0].Columns) != fmt.Sprintf("map[t:[%[1]s] u:[%[1]s]]", key) {
		t.Errorf("the fills are %+v, want one of %s in t and u", fills, key)
	}
	n.Known = Known{Plans: map[string]*Plan{over.Version: over}, Fills: map[string]*Fill{}, History: &History{Newest: 1 << 40, Now: 1 << 40}, Now: 1 << 40}
	two.Retained["aaaaa.y"] = Retention{Keep: 10}
	if p := Bind(two, &n.Known); len(p.Cuts) > 0 {
		t.Errorf("the series of two topics is over the cuts %v, want none", p.Cuts)
	}
}
