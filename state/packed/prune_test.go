package packed

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
)

// Members and bounds of tiles before the first one kept are dropped, however they came and whatever was dropped before.
func TestMembersPrune(t *testing.T) {
	s := &state.Series{ID: "users", Measure: state.Distinct, Tile: 1}
	mutation := func(member string, tile int64) *state.Mutation {
		return &state.Mutation{Series: s, Tile: tile, Text: &state.Text{Member: []byte(member)}}
	}
	m := New(s).(*members)
	for _, step := range []struct {
		tile, first int64 // the tile applied, and the first one kept then
		held        []int64
	}{
		{5, 5, []int64{5}},
		{2, 4, []int64{5}},
		{4, 4, []int64{4, 5}},
		{6, 5, []int64{5, 6}},
		{7, 8, nil},
	} {
		m.Apply(mutation("u", step.tile))
		if empty := m.Prune(step.first); empty != (step.held == nil) {
			t.Errorf("tile %d, pruned before %d: empty %v", step.tile, step.first, empty)
		}
		if held := m.held(); !slices.Equal(held, step.held) {
			t.Errorf("tile %d, pruned before %d: tiles %v, want %v", step.tile, step.first, held, step.held)
		}
	}

	m = New(s).(*members)
	m.lower(5, math.MaxUint64)
	m.Apply(mutation("u", 6))
	m.Prune(6)
	want := New(s)
	want.Apply(mutation("u", 6))
	if got, want := m.Append(nil), want.Append(nil); !bytes.Equal(got, want) {
		t.Errorf("with a bound that was dropped: %x, want %x", got, want)
	}
}

// Values whose last events have the same time are kept in their own order.
func TestLastSeenAtTheSameTime(t *testing.T) {
	s := &state.Series{ID: "last", Measure: state.LastTimes, Tile: 1, Max: 10}
	pack := func(values ...string) []byte {
		l := New(s)
		for i, v := range values {
			l.Apply(&state.Mutation{Series: s, Num: packedEpoch + int64(i/2), Text: &state.Text{Member: []byte(v)}})
		}
		return l.Append(nil)
	}
	if got, want := pack("b", "a", "b"), pack("a", "a", "b"); !bytes.Equal(got, want) {
		t.Errorf("packed %x, want %x", got, want)
	}
}
