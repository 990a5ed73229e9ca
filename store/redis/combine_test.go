package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
)

// The calls for what is collected take whole slices, one after the other, and stay within the limit unless a single
// slice exceeds it.
func TestCallsTakeWholeSlices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := combiner{limit: rapid.IntRange(1, 50).Draw(t, "limit")}
		counter := &state.Series{ID: "count", Group: "g", Measure: state.CountEvents}
		mutations := rapid.IntRange(0, 300).Draw(t, "mutations")
		for i := range mutations {
			entity := fmt.Appendf(nil, "e%d", rapid.IntRange(0, 99).Draw(t, "entity"))
			u := state.EntityUpdate{Entity: entity, Hash: state.EntityHash(entity)}
			c.add(&u, []state.Mutation{{Series: counter, Tile: int64(i), Num: 1}})
		}
		from, keys := 0, 0
		for _, call := range c.splitIntoCalls() {
			count, slices := 0, map[uint8]bool{}
			for _, k := range call.keys {
				if slice := int(k.slice); slice < from || slice >= call.slices {
					t.Errorf("a key of slice %d is in the call of slices %d to %d", slice, from, call.slices-1)
				}
				count += int(k.count)
				slices[k.slice] = true
			}
			if count > c.limit && len(slices) > 1 && mutations >= c.limit {
				t.Errorf("a call of %d slices has %d mutations, want at most %d", len(slices), count, c.limit)
			}
			from, keys = call.slices, keys+len(call.keys)
		}
		if from != state.ShardSlices || keys != len(c.keys) {
			t.Errorf("the calls reach slice %d with %d keys, want %d with %d", from, keys, state.ShardSlices, len(c.keys))
		}
	})
}

// Calls of a long batch stay short, too, if its mutations are few and long.
func TestLongMembersMakeShortCalls(t *testing.T) {
	t.Parallel()
	c := combiner{limit: defaultCallMutations}
	for n := 0; !c.tooMany(); n++ {
		device := fmt.Appendf(nil, "d%d", n)
		c.add(&state.EntityUpdate{Entity: device, Hash: state.EntityHash(device)}, []state.Mutation{{Series: users, Tile: 100, Text: &state.Text{Member: make([]byte, 2<<10)}}})
	}
	calls := c.splitIntoCalls()
	for i, call := range calls {
		size := 0
		for _, k := range call.keys {
			size += int(k.bytes)
		}
		if size > maxCallBytes {
			t.Errorf("call %d of %d has members of %d bytes, want at most %d", i, len(calls), size, maxCallBytes)
		}
	}
	if len(calls) < state.ShardSlices/4 {
		t.Errorf("%d calls were collected, want at least %d", len(calls), state.ShardSlices/4)
	}
}

// A key that fills a call of its own ends what is applied together, by its mutations or by their size; as many of many keys
// do not.
func TestKeyThatFillsACall(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size, keys int
		want       int // mutations until there are too many
	}{
		"mutations of one key":      {0, 1, 50},
		"long members of one key":   {maxCallBytes/10 + 1, 1, 10},
		"mutations of many keys":    {0, 1000, 50 * state.ShardSlices / 2},
		"long members of many keys": {maxCallBytes/10 + 1, 1000, 10 * state.ShardSlices / 2},
	} {
		t.Run(name, func(t *testing.T) {
			c, n := combiner{limit: 50}, 0
			for ; !c.tooMany(); n++ {
				device := fmt.Appendf(nil, "d%d", n%test.keys)
				c.add(&state.EntityUpdate{Entity: device, Hash: state.EntityHash(device)},
					[]state.Mutation{{Series: users, Tile: int64(n), Text: &state.Text{Member: make([]byte, test.size)}}})
			}
			if n != test.want {
				t.Errorf("there are too many after %d mutations, want %d", n, test.want)
			}
		})
	}
}

// Of mutations that one can express, one is left, in whatever order events come.
func TestCombinerCombinesAll(t *testing.T) {
	t.Parallel()
	series := []*state.Series{
		{ID: "count", Group: "g", Measure: state.CountEvents}, {ID: "set", Group: "g", Measure: state.Distinct},
		{ID: "last", Group: "g", Measure: state.LastTimes}, {ID: "moments", Group: "g", Measure: state.ValueMoments},
		{ID: "count", Group: "c", Measure: state.CountEvents, Parent: "g"}, {ID: "other", Group: "h", Measure: state.CountEvents},
	}
	rapid.Check(t, func(t *rapid.T) {
		c := combiner{limit: defaultCallMutations}
		want := map[string]int{} // events, by what they have in common
		for i := range rapid.IntRange(0, 200).Draw(t, "events") {
			entity := fmt.Appendf(nil, "e%d", rapid.IntRange(0, 3).Draw(t, "entity"))
			u := state.EntityUpdate{Entity: entity, Hash: state.EntityHash(entity)}
			s := rapid.SampledFrom(series).Draw(t, "series")
			if s.Parent != "" {
				u.Entity = fmt.Appendf(entity, "|c%d", rapid.IntRange(0, 1).Draw(t, "child"))
			}
			m := state.Mutation{Series: s, Tile: rapid.Int64Range(0, 5).Draw(t, "tile"), Num: 1, Text: new(state.Text)}
			if s.Measure.Member() != state.NoMember {
				m.Member = []byte(rapid.StringMatching("[a-f]").Draw(t, "member"))
			}
			c.add(&u, []state.Mutation{m})
			what := fmt.Sprintf("%s %s %s %s", u.Entity, s.Group, s.ID, m.Member)
			if s.Measure.ByTile() {
				what += fmt.Sprint(" ", m.Tile)
			} else if !s.Measure.Combines() {
				what += fmt.Sprint(" event ", i)
			}
			want[what]++
		}
		got, counts := 0, 0
		for _, k := range c.keys {
			for e := k.first; e >= 0; e = c.entities[e].next {
				for in := c.entities[e].first; in >= 0; in = c.sections[in].next {
					for _, m := range mutationsOf(&c, in) {
						if got++; m.Series.Measure == state.CountEvents {
							counts += int(m.Num)
						}
					}
				}
			}
		}
		counted := 0
		for what, n := range want {
			if strings.Contains(what, "count") || strings.Contains(what, "other") {
				counted += n
			}
		}
		if got != len(want) || got != c.count || counts != counted {
			t.Errorf("%d mutations are left, which count %d events, want %d and %d", got, counts, len(want), counted)
		}
		if c.byMember.used > got {
			t.Errorf("%d mutations of %d are indexed", c.byMember.used, got)
		}
	})
}

// mutationsOf returns the mutations of a section.
func mutationsOf(c *combiner, in int32) []state.Mutation {
	s := &c.sections[in]
	mutations := []state.Mutation{s.first}
	if s.further >= 0 {
		for i := c.further[s.further].first; i >= 0; i = c.more[i].next {
			mutations = append(mutations, c.more[i].Mutation)
		}
	}
	return mutations
}

// Entities whose hashes are equal by chance stay apart, and so do mutations.
func TestCombinerSurvivesEqualHashes(t *testing.T) {
	t.Parallel()
	const hash = 7
	var c combiner
	count := &state.Series{ID: "count", Group: "g", Measure: state.CountEvents}
	members := &state.Series{ID: "members", Group: "g", Measure: state.Distinct}
	first := c.own([]byte("e1"), hash, "g", 0)
	if c.own([]byte("e2"), hash, "g", 0) == first {
		t.Error("two entities have one key")
	}
	e := c.entities[first]
	for name, test := range map[string]struct {
		group, text string
		want        int32
	}{
		"the same":      {"g", "e1", first},
		"another text":  {"g", "e3", -1},
		"another group": {"h", "e1", -1},
	} {
		if got := c.entity(e.hash, test.group, []byte(test.text)); got != test.want {
			t.Errorf("%s: found entity %d, want %d", name, got, test.want)
		}
	}

	mutation := func(member string) *state.Mutation {
		return &state.Mutation{Series: members, Tile: 1, Text: &state.Text{Member: []byte(member)}}
	}
	at, other := c.addSection(first, mutation("z")), c.addSection(first, &state.Mutation{Series: count, Tile: 5})
	for _, member := range []string{"a", "b", "y"} {
		c.append(at, mutation(member))
	}
	c.index(&c.further[c.sections[at].further])
	c.byMember.add(memberHash(other, mutation("a")), 0)
	c.byMember.add(memberHash(at, mutation("c")), 0)
	c.append(other, &state.Mutation{Series: count, Tile: 6})
	c.append(other, &state.Mutation{Series: count, Tile: 7})
	for name, test := range map[string]struct {
		section int32
		member  string
		want    bool
	}{
		"the same":        {at, "a", true},
		"another section": {other, "a", false},
		"another member":  {at, "c", false},
	} {
		if got := c.combine(test.section, mutation(test.member)); got != test.want {
			t.Errorf("%s: combined %v, want %v", name, got, test.want)
		}
	}
}

// An index finds all that was added under a hash since the last reset, however many slots it keeps.
func TestHashIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x hashIndex
		added := map[uint64][]int{}
		hashes := rapid.Map(rapid.Uint64Range(0, 999), func(n uint64) uint64 { return n << 32 })
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for _, h := range rapid.SliceOfN(hashes, 1, 300).Draw(t, "hashes") {
					x.add(h, x.used)
					added[h] = append(added[h], x.used-1)
				}
			},
			"reset": func(*rapid.T) {
				x.reset()
				clear(added)
			},
			"": func(t *rapid.T) {
				h := hashes.Draw(t, "hash")
				if got := slices.Sorted(x.find(h)); !slices.Equal(got, added[h]) {
					t.Errorf("%x: found %v, want %v", h, got, added[h])
				}
			},
		})
	})
}

// Slots that are no longer needed are given up, so that small batches need not clear them.
func TestHashIndexShrinks(t *testing.T) {
	t.Parallel()
	var x hashIndex
	for i := range 1000 {
		x.add(uint64(i)<<32, i)
	}
	x.reset()
	x.reset()
	if len(x.slots) != 2048 {
		t.Errorf("%d slots after 1000 of 2048 were used, want as many", len(x.slots))
	}
	for range 10 {
		x.add(1<<32, 0)
		x.reset()
	}
	if len(x.slots) != minSlots {
		t.Errorf("%d slots after one was used ten times, want %d", len(x.slots), minSlots)
	}
}
