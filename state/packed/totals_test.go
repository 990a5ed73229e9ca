package packed

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// together returns one bucket with the total of some.
func together(s *state.Series, tiles []state.Bucket) (all []state.Bucket) {
	for i, b := range tiles {
		switch order := s.Measure.Order(); {
		case i == 0:
			all = append(all, b)
		case order == 0:
			all[0].Value = value.Add(all[0].Value, b.Value)
		case value.Compare(b.Value, all[0].Value) == order:
			all[0].Value = b.Value
		}
		all[0].Tile = b.Tile
	}
	return all
}

// Totals equal the sum of the tiles in every window, also for sums of more than 64 bits.
func TestTotals(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tested := 0
	for _, s := range everySeries() {
		if !HasTotals(s) {
			continue
		}
		tested++
		for range 100 {
			held, totals := New(s), new(totals)
			totals.Reset(s)
			windows := []state.Read{{First: 0, Last: 1}, {First: 1 << 40, Last: 1 << 41}}
			for range 5 {
				first := 99 + random.Int64N(13)
				windows = append(windows, state.Read{Series: s, First: first, Last: first + random.Int64N(13)})
			}
			for _, w := range windows {
				totals.over(w.First, w.Last)
			}
			for range random.IntN(4) {
				var part []byte
				before := firstTile(s)
				for range 1 + random.IntN(6) {
					part, before = appendMutation(part, randomMutation(random, s), before, state.Secret{})
				}
				if random.IntN(2) == 0 { // as after a compaction
					compact := New(s)
					if err := compact.Merge(part); err != nil {
						t.Fatal(err)
					}
					part = compact.Append(nil)
				}
				if err := held.Merge(part); err != nil {
					t.Fatal(err)
				}
				if err := totals.Merge(part); err != nil {
					t.Fatal(err)
				}
			}
			for i, w := range windows {
				var got []state.Bucket
				if all, met := totals.Of(i); met {
					got = append(got, all)
				}
				if want := together(s, held.Read(&w).Buckets); !reflect.DeepEqual(got, want) {
					t.Fatalf("%v of %v, tiles %d to %d: %+v, want %+v", s.Measure, s.Type, w.First, w.Last, got, want)
				}
			}
		}
	}
	if tested < 9 {
		t.Errorf("%d series have totals, want at least 9", tested)
	}
}

// A sum of floats is rounded once, so it needs all tiles.
func TestSumsOfFloatsHaveNoTotals(t *testing.T) {
	for _, s := range everySeries() {
		want := s.Layout() == state.Tiles && (s.Measure != state.Sum || s.Type != value.Float)
		if HasTotals(s) != want {
			t.Errorf("%v of %v: HasTotals = %v, want %v", s.Measure, s.Type, !want, want)
		}
	}
}

// Damage to a state is also damage to its totals.
func TestDamagedTotals(t *testing.T) {
	for _, s := range everySeries() {
		if !HasTotals(s) {
			continue
		}
		totals := new(totals)
		totals.Reset(s)
		totals.over(0, 1<<40)
		if err := totals.Merge([]byte{2}); err == nil {
			t.Errorf("%v of %v: no error for a tile without a number", s.Measure, s.Type)
		}
	}
}
