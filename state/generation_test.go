package state

import (
	"fmt"
	"testing"
)

// generationPlan keeps columns of a series for some time.
func generationPlan(version string, keep int64, keys ...string) *Plan {
	p := fillPlan(version, keys...)
	for key := range p.Retained {
		p.Retained[key] = Retention{Keep: keep}
	}
	return p
}

// namespace is what plans have left in a topic t, one behind the other.
type namespace struct {
	Known
}

func newNamespace() *namespace {
	return &namespace{Known: Known{Plans: map[string]*Plan{}, Fills: map[string]*Fill{}, History: &History{}, Now: 1_000_000}}
}

// take binds definitions and has that plan take the topic.
func (n *namespace) take(definitions *Plan) *Plan {
	p := Bind(definitions, &n.Known)
	if n.Plans[p.Version] == nil {
		var others []*Plan
		for _, other := range n.Plans {
			others = append(others, other)
		}
		if f := NewFill(p, others); f != nil {
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

// fill has all that is to be filled be whole.
func (n *namespace) fill() {
	for i := range n.History.Fills {
		n.History.Fills[i].Whole = !n.History.Fills[i].Broken
	}
}

// What definitions need more of a series than it has is kept in a new generation, beside the
// old one until that is whole.
func TestBind(t *testing.T) {
	short := generationPlan("short", 1000, "aaaaa.x:col1")
	for name, more := range map[string]*Plan{
		"a longer past": generationPlan("more", 5000, "aaaaa.x:col1"),
		"for ever":      generationPlan("more", 0, "aaaaa.x:col1"),
		"a column more": generationPlan("more", 1000, "aaaaa.x:col1", "aaaaa.x:col2"),
		"more values":   {Version: "more", Retained: map[string]Retention{"aaaaa.x:col1": {Keep: 1000, Max: 5}}, Topics: short.Topics},
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
			expect(more, "map[aaaaa:[0 1]]") // once more, nothing has changed
			expect(short, "map[]")           // back in time, to what has all of it
			expect(more, "map[aaaaa:[0 1]]")
			n.fill()
			expect(more, "map[aaaaa:[1]]")
			expect(short, "map[aaaaa:[1]]") // the old one is not fed any more
			expect(more, "map[aaaaa:[1 2]]")
			n.fill()
			expect(more, "map[aaaaa:[2]]")
		})
	}
}

// What stays is kept with no more than is needed of it and there.
func TestBindKeepsWhatIsThere(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x:col1", "aaaaa.x:old", "bbbbb.x"))
	p := n.take(generationPlan("2", 5000, "aaaaa.x:col1", "aaaaa.x:new", "bbbbb.y"))
	a, b := GenerationID("aaaaa", 1), GenerationID("bbbbb", 1)
	want := fmt.Sprint(map[string]Retention{
		"aaaaa.x:col1": {Keep: 1000}, a + ".x:col1": {Keep: 5000}, a + ".x:new": {Keep: 5000},
		b + ".y": {Keep: 5000}, // it is fed from elsewhere: nothing of the old one serves
	})
	if got := fmt.Sprint(p.Retained); got != want {
		t.Errorf("it keeps %s, want %s", got, want)
	}
	if p.Definitions() != "2" || p.Version == "2" {
		t.Errorf("the version is %s", p.Version)
	}
	for key := range p.Retained {
		if p.Topics[key] != "t" {
			t.Errorf("%s has the topic %q", key, p.Topics[key])
		}
	}
}

// What was passed by before all that is asked for makes no difference.
func TestBindForgets(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x"))
	n.take(generationPlan("2", 1000, "ccccc.x"))
	n.Now += 2*1000 + MaxAhead.Milliseconds()
	again := generationPlan("1", 1000, "aaaaa.x")
	if p := Bind(again, &n.Known); fmt.Sprint(p.Generations) != "map[aaaaa:[1]]" {
		t.Errorf("generations %v: what was passed by is still asked for", p.Generations)
	}
	n.History.PlanEpochs[1].Last = 1_000_000
	n.History.PlanEpochs = append(n.History.PlanEpochs, PlanEpoch{Topic: "t", Version: "1", Last: MaxTime})
	n.Now++
	if p := Bind(again, &n.Known); len(p.Generations) > 0 {
		t.Errorf("generations %v: nobody asks for what was passed by", p.Generations)
	}
}

// A fill that was given up is made anew, in another generation.
func TestBindAfterABrokenFill(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x"))
	more := generationPlan("2", 1000, "aaaaa.x", "ccccc.x")
	n.take(more)
	n.History.Fills[0].Broken = true
	if p := n.take(more); fmt.Sprint(p.Generations) != "map[ccccc:[0 1]]" && fmt.Sprint(p.Generations) != "map[ccccc:[1]]" {
		t.Errorf("generations %v", p.Generations)
	}
}

// Of what serves, the most complete is read, and the last where they are alike.
func TestBestGeneration(t *testing.T) {
	n := newNamespace()
	n.take(generationPlan("1", 1000, "aaaaa.x"))
	n.take(generationPlan("2", 5000, "aaaaa.x"))
	serving := n.History.Serving(generationPlan("2", 5000, "aaaaa.x"))
	best := func(keep int64) int {
		return n.History.Best("aaaaa", serving.GenerationsOf("aaaaa"), []Retained{{Key: "aaaaa.x", Topic: "t", Retention: Retention{Keep: keep}}})
	}
	if got := best(1000); got != 0 {
		t.Errorf("generation %d is read for what was always kept", got)
	}
	if got := best(5000); got != 1 {
		t.Errorf("generation %d is read for what is new", got)
	}
	n.fill()
	if got := best(1000); got != 1 {
		t.Errorf("generation %d is read once both are whole", got)
	}
}
