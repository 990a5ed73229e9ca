package packed

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// perUser are series of every measure with tiles, kept by users, with a cap.
func perUser(most int) []*state.Series {
	var list []*state.Series
	for m := state.CountEvents; m <= state.GreatestText; m++ {
		if m.Layout() != state.LastSeen && m.Layout() != state.Logs && m.Layout() != state.Filters && m.Layout() != state.DedupSet {
			list = append(list, &state.Series{ID: m.String(), Measure: m, Type: value.Int, Tile: 10, Per: "user", Max: most})
		}
	}
	return list
}

func userMutation(s *state.Series, tile int64, user string, n int64) *state.Mutation {
	mutation := &state.Mutation{Series: s, Tile: tile, Num: n, Text: &state.Text{Key: []byte(user), Member: fmt.Append(nil, n)}}
	if m := s.Measure; m == state.FirstValue || m == state.LastValue {
		mutation.Member = state.AppendValue(nil, value.Value{Type: value.Int, Num: n})
	}
	return mutation
}

// In every window the first keys have all their state, and it is known whether there are more, also after packing,
// dropping and merging.
func TestFirstKeysOfEveryWindowAreComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "max")
		for _, s := range perUser(most) {
			held, all := New(s), New(&state.Series{Measure: s.Measure, Type: s.Type, Tile: s.Tile, Per: "user"})
			var packed []byte
			packer := Packer{}
			for range rapid.IntRange(0, 40).Draw(t, "mutations") {
				mutation := userMutation(s, rapid.Int64Range(0, 5).Draw(t, "tile"), rapid.StringMatching("[a-i]").Draw(t, "user"), rapid.Int64Range(0, 9).Draw(t, "n"))
				all.Apply(mutation)
				applySomehow(t, held, &packer, s, mutation)
				if rapid.IntRange(0, 9).Draw(t, "packed") == 0 {
					packed, held = held.Append(nil), New(s)
					if err := held.Merge(packed); err != nil {
						t.Fatal(err)
					}
				}
			}
			first := rapid.Int64Range(0, 5).Draw(t, "first")
			read := &state.Read{Series: s, First: first, Last: first + rapid.Int64Range(0, 5).Draw(t, "wide")}
			got, want := held.Read(read).Groups, all.Read(read).Groups
			if (len(got) > most) != (len(want) > most) {
				t.Fatalf("%s: %d keys, want %d", s.Measure, len(got), len(want))
			}
			for i := range min(most, len(want)) {
				if g, w := written(got[i]), written(want[i]); g != w {
					t.Fatalf("%s: key %d is %s, want %s", s.Measure, i, g, w)
				}
			}
		}
	})
}

func written(g state.Group) string {
	slices.Sort(g.Members)
	m := &g.Moments
	return fmt.Sprintf("%s %v %q %d %d %.6f %.6f %v %v", g.Key, g.Buckets, g.Members, g.Count, m.N, m.Mean, m.Squares, m.Sum, m.SquareSum)
}

// The size of a hot entity does not grow with the number of its keys.
func TestKeysAreBounded(t *testing.T) {
	for _, s := range perUser(20) {
		held := New(s).(*groups)
		most := 0
		for i := range int64(20_000) {
			held.Apply(userMutation(s, i%3, fmt.Sprint("u", i*7919%20_000), i))
			most = max(most, len(held.states))
		}
		if most > 250 {
			t.Errorf("%s: up to %d keys were held at once, want at most 250: 3 tiles need 63", s.Measure, most)
		}
		packed := held.Append(nil)
		again := New(s).(*groups)
		if err := again.Merge(packed); err != nil {
			t.Fatal(err)
		}
		if n := len(again.states); n > 63 {
			t.Errorf("%s: %d keys are packed, want at most 63", s.Measure, n)
		}
	}
}

// Bytes that no state has packed cause an error, never a panic.
func TestDamagedState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		damaged := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		for _, s := range perUser(3) {
			plain := *s
			plain.Per = ""
			for _, series := range []*state.Series{s, &plain} {
				held := New(series)
				err := held.Merge(damaged)
				held.Read(&state.Read{Series: series, Last: 1 << 40})
				if again := New(series); err == nil && again.Merge(held.Append(nil)) != nil {
					t.Fatalf("%s accepted %x, and was packed as something that cannot be read", series.Measure, damaged)
				}
			}
		}
	})
	for _, s := range perUser(3) {
		if err := New(s).Merge([]byte{1, 'a', 5, 1}); err != errPacked {
			t.Errorf("%s: got error %v, want %v", s.Measure, err, errPacked)
		}
	}
	twice := []byte{1, 'a', 2, 2, 0} // in one tile
	if err := New(&state.Series{Measure: state.Distinct, Tile: 1}).Merge(twice); err != errPacked {
		t.Errorf("a member that occurs twice in a tile: got error %v, want %v", err, errPacked)
	}
}
