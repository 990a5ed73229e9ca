package packed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// The members of a tile that are kept, and the tile's bound, depend on the members alone, and not on their order or on
// intermediate packing. Kept members have all their tiles.
func TestMemberSampleDependsOnMembersOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &state.Series{ID: "users", Measure: state.Distinct, Type: value.Int, Tile: 10, Values: rapid.IntRange(1, 6).Draw(t, "values")}
		held, all := New(s), map[int64]map[string]bool{}
		var packer Packer
		for range rapid.IntRange(0, 80).Draw(t, "mutations") {
			mutation := userMutation(s, rapid.Int64Range(0, 4).Draw(t, "tile"), "", rapid.Int64Range(0, 15).Draw(t, "n"))
			if all[mutation.Tile] == nil {
				all[mutation.Tile] = map[string]bool{}
			}
			all[mutation.Tile][string(mutation.Member)] = true
			applySomehow(t, held, &packer, s, mutation)
			if rapid.IntRange(0, 9).Draw(t, "packed") == 0 {
				packed := held.Append(nil)
				if held = New(s); rapid.Bool().Draw(t, "after another mutation") {
					held.Apply(mutation)
				}
				if err := held.Merge(packed); err != nil {
					t.Fatal(err)
				}
			}
		}
		first := rapid.Int64Range(0, 4).Draw(t, "first")
		read := &state.Read{Series: s, First: first, Last: first + rapid.Int64Range(0, 4).Draw(t, "wide")}
		want, bound := sampled(all, read, s.Values)
		got := held.Read(read)
		slices.Sort(got.Members)
		if fmt.Sprint(got.Members) != fmt.Sprint(want) || got.Bound != bound {
			t.Fatalf("sample %q below hash %x, want %q below %x", got.Members, got.Bound, want, bound)
		}
	})
}

// applySomehow applies a mutation in memory, or packed and merged.
func applySomehow(t *rapid.T, held State, packer *Packer, s *state.Series, mutation *state.Mutation) {
	if rapid.Bool().Draw(t, "in memory") {
		held.Apply(mutation)
		return
	}
	packer.Begin(s)
	packer.Add(mutation)
	if err := held.Merge(slices.Clone(packer.body)); err != nil {
		t.Fatal(err)
	}
}

// sampled are the members of each tile with the least hashes, at most `most` of them, and the least
// hash that was left out, 0 for none.
func sampled(all map[int64]map[string]bool, r *state.Read, most int) (list []string, bound uint64) {
	hash := func(text string) uint64 { return state.Secret{}.HashString(text) }
	for tile := r.First; tile <= r.Last; tile++ {
		var texts []string
		for text := range all[tile] {
			texts = append(texts, text)
		}
		slices.SortFunc(texts, func(a, b string) int {
			if hash(a) < hash(b) {
				return -1
			}
			return 1
		})
		if len(texts) > most {
			if b := hash(texts[most]); bound == 0 || b < bound {
				bound = b
			}
			texts = texts[:most]
		}
		list = append(list, texts...)
	}
	slices.Sort(list)
	return slices.Compact(list), bound
}

// hostile makes mutations with many tiles, many keys and long values.
func hostile(random *rand.Rand, s *state.Series, n int64) *state.Mutation {
	mutation := &state.Mutation{Series: s, Tile: 19700 + n%30, Num: n, Text: &state.Text{Key: fmt.Append(nil, "key", random.IntN(300)), Member: fmt.Append(nil, n, strings.Repeat("v", random.IntN(80)))}}
	switch s.Measure {
	case state.FirstValue, state.LastValue:
		mutation.Member = state.AppendValue(nil, value.Value{Type: value.Int, Num: n})
	case state.Record:
		record := append(state.AppendLogTime(nil, n), make([]byte, random.IntN(3000))...)
		mutation.Tile, mutation.Member = n, state.AppendLogRecord(nil, record)
	}
	return mutation
}

// Growing series take no more bytes than they may, and state what they lack.
func TestStatesAreBounded(t *testing.T) {
	const most = 20_000
	list := []*state.Series{
		{ID: "set", Measure: state.Distinct, Type: value.String, Tile: day, Values: 1000, Bytes: most},
		{ID: "hll", Measure: state.Approx, Type: value.String, Tile: day, Bytes: most},
		{ID: "seen", Measure: state.Seen, Type: value.String, Tile: day, Max: 1000, Rate: 0.001, Bytes: most, Tiles: 30},
		{ID: "log", Measure: state.Record, Tile: 1, Max: 1000, Bytes: most},
	}
	for _, s := range perUser(100) {
		s.Bytes, s.Values, s.Tile = most, 1000, day
		list = append(list, s)
	}
	for _, s := range list {
		t.Run(s.ID+s.Per, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 8))
			var packer Packer
			var packed []byte
			values := map[string]bool{}
			for n := range int64(30_000) {
				packer.Begin(s)
				mutation := hostile(random, s, n)
				values[string(mutation.Member)] = true
				packer.Add(mutation)
				packed = packer.End(packed)
				if n%10_000 == 9999 {
					var err error
					if packed, err = new(Compactor).Compact(nil, packed, func(uint32) *state.Series { return s }, none, 0, Nonce{1}); err != nil {
						t.Fatal(err)
					}
					if len(packed) > most+headerSize+tagSize+5 {
						t.Fatalf("packed %d bytes, want at most %d", len(packed), most)
					}
				}
			}
			held := New(s)
			if err := Sections(packed, func(_ uint32, body []byte) error { return held.Merge(body) }); err != nil {
				t.Fatal(err)
			}
			checkSqueezed(t, s, held.Read(&state.Read{Series: s, First: math.MinInt64, Last: math.MaxInt64}), values)
		})
	}
}

// checkSqueezed checks a state that states what it lacks.
func checkSqueezed(t *testing.T, s *state.Series, got state.WindowState, values map[string]bool) {
	t.Helper()
	n := float64(len(values))
	switch s.Layout() {
	case state.Groups:
		if len(got.Groups) <= s.Max && !got.Capped && got.Groups[0].Bound == 0 && got.Groups[0].StandardError == 0 {
			t.Error("the state is complete, want it to report what it lacks")
		}
	case state.Members:
		r := mustFind(t, "count_distinct", "set").Merge(aggregate.Call{}, 0, []state.WindowState{got})
		if off := math.Abs(float64(r.Value.Num)-n) / n; r.StandardError == 0 || off > 4*r.StandardError {
			t.Errorf("%v values are counted as %d, %.3f off, with a stated error of %v", n, r.Value.Num, off, r.StandardError)
		}
	case state.Sketches:
		if off := math.Abs(float64(got.Count)-n) / n; got.StandardError == 0 || off > 4*got.StandardError {
			t.Errorf("%v values are counted as %d, %.3f off, with a stated error of %v", n, got.Count, off, got.StandardError)
		}
	case state.Filters:
		for value := range values {
			if !got.Filter.Has([]byte(value)) && !got.Filter.Full() {
				t.Fatalf("%q occurred, but is not found", value)
			}
		}
		falsely := 0
		for i := range 1000 {
			if got.Filter.Has(fmt.Append(nil, "never met ", i)) {
				falsely++
			}
		}
		if stated := 1000 * got.Filter.FalsePositiveRate(); float64(falsely) > 1.2*stated+20 {
			t.Errorf("%d of 1000 values are found that never occurred, the stated number is %v", falsely, stated)
		}
	case state.Logs:
		if _, ok := got.Log.CutOff(); !ok {
			t.Error("the log does not report that it was cut off")
		}
	}
}

func mustFind(t *testing.T, name, method string) aggregate.Mergeable {
	t.Helper()
	function, ok := aggregate.Find(name, method)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return function.(aggregate.Mergeable)
}

// A sketch that was made coarser equals one that was coarse from the beginning, also if it was merged and packed in
// between.
func TestCoarsenedSketchEqualsCoarseSketch(t *testing.T) {
	for coarser := range uint8(hllBits - hllLeastBits + 1) {
		var before, behind, other hyperLogLog
		behind.coarsen(coarser)
		for n := range 20_000 {
			value := state.Secret{}.Hash(fmt.Append(nil, "value", n))
			before.add(value)
			behind.add(value)
			if n%3 == 0 {
				other.add(value)
			}
		}
		before.coarsen(coarser)
		r := decoder{packed: before.pack(nil)}
		var packed hyperLogLog
		packed.merge(&other)
		packed.unpack(&r)
		if r.err != nil || r.more() {
			t.Fatalf("coarser by %d: error %v, %d bytes were not read", coarser, r.err, r.rest())
		}
		for _, h := range []*hyperLogLog{&before, &packed} {
			if got, want := h.count(), behind.count(); got != want || h.coarser != coarser {
				t.Errorf("coarser by %d: the estimate is %d, want %d", h.coarser, got, want)
			}
		}
		if off := math.Abs(float64(before.count())-20_000) / 20_000; off > 4*before.standardError() {
			t.Errorf("coarser by %d: 20000 values are counted as %d, with a stated error of %v", coarser, before.count(), before.standardError())
		}
	}
}

// A state with 31 tiles and values and keys of 256 bytes, squeezed as far as possible, has the size in docs/state.md.
func TestSqueezedStateIsAsSmallAsDocumented(t *testing.T) {
	for _, c := range []struct {
		measure state.Measure
		per     string
		most    int
	}{
		{state.Distinct, "", 17 << 10}, {state.Approx, "", 2 << 10}, {state.Seen, "", 2 << 10},
		{state.CountEvents, "key", 17 << 10}, {state.Approx, "key", 17 << 10}, {state.Distinct, "key", 25 << 10},
	} {
		s := &state.Series{ID: "s", Measure: c.measure, Per: c.per, Type: value.String, Tile: day, Max: 1000, Values: 1000, Rate: 0.001, Tiles: 31, Bytes: 1}
		held := New(s)
		for n := range int64(31 * 40) {
			held.Apply(&state.Mutation{Series: s, Tile: 19700 + n%31, Num: 1, Text: &state.Text{Key: fmt.Appendf(nil, "%0256d", n*7919%100_003), Member: fmt.Appendf(nil, "%0256d", n)}})
		}
		if got := len(Fit(nil, s, held)); got > c.most || got < c.most/2 {
			t.Errorf("measure %v by %q: %d bytes are left, want at most %d and at least half of that", c.measure, c.per, got, c.most)
		}
	}
}

// Many growing series of a group stay within the group's bound together, and each states what it lacks; the others are
// unchanged.
func TestGroupsAreBounded(t *testing.T) {
	const most, n = 100_000, 200
	known := map[uint32]*state.Series{}
	var packer Packer
	var whole []byte
	random := rand.New(rand.NewPCG(3, 4))
	values := map[*state.Series]map[string]bool{}
	for i := range n {
		s := &state.Series{ID: fmt.Sprintf("s%04d", i), Measure: state.Distinct, Type: value.String, Tile: day, Values: 1000, Bytes: 4 << 10, GroupBytes: most}
		switch i % 4 {
		case 1:
			s.Measure, s.Values = state.Approx, 0
		case 2:
			s.Measure, s.Tile, s.Values, s.Max = state.Record, 1, 0, 1000
		case 3:
			s.Measure, s.Values, s.Bytes, s.GroupBytes = state.CountEvents, 0, 0, 0
		}
		known[s.Tag()], values[s] = s, map[string]bool{}
		packer.Begin(s)
		for j := range int64(300) {
			mutation := &state.Mutation{Series: s, Tile: 19700 + j%5, Num: 1, Text: &state.Text{Member: fmt.Append(nil, "v", random.IntN(1000))}}
			if s.Measure == state.Record {
				mutation.Tile, mutation.Member = j, state.AppendLogRecord(nil, append(state.AppendLogTime(nil, j), make([]byte, 20)...))
			}
			values[s][string(mutation.Member)] = true
			packer.Add(mutation)
		}
		whole = packer.End(whole)
	}
	got, err := new(Compactor).Compact(nil, whole, func(tag uint32) *state.Series { return known[tag] }, none, 0, Nonce{1})
	if err != nil {
		t.Fatal(err)
	}
	if counts := n / 4 * 64; len(got) > most+counts+n*(tagSize+2)+headerSize || len(got) < most/2 {
		t.Errorf("packed %d bytes, want about %d", len(got), most)
	}
	sections := 0
	if err := Sections(got, func(tag uint32, body []byte) error {
		sections++
		s := known[tag]
		held := New(s)
		if err := held.Merge(body); err != nil {
			return err
		}
		read := held.Read(&state.Read{Series: s, First: math.MinInt64, Last: math.MaxInt64})
		if s.Measure == state.CountEvents {
			if len(read.Buckets) != 5 || read.Buckets[0].Value.Num != 60 {
				t.Errorf("%s has the tiles %v, want 5, of which the first counts 60", s.ID, read.Buckets)
			}
			return nil
		}
		if s.Measure != state.Approx { // which is short already
			checkSqueezed(t, s, read, values[s])
		}
		return nil
	}); err != nil || sections != n {
		t.Errorf("%d sections are packed, error %v", sections, err)
	}
}
