package packed

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// BenchmarkCompact compacts the key of an entity with a child that has doubled since the last time.
func BenchmarkCompact(b *testing.B) {
	const minute, day = 60_000, 24 * 60 * 60_000
	series := []*state.Series{
		{ID: "count", Group: "d", Measure: state.CountEvents, Tile: 15 * minute, Keep: 7 * day},
		{ID: "sum", Group: "d", Measure: state.Sum, Type: value.Decimal, Scale: 2, Tile: 5 * minute, Keep: day},
		{ID: "most", Group: "d", Measure: state.Max, Type: value.Decimal, Scale: 2, Tile: day, Keep: 30 * day},
		{ID: "ever", Group: "d", Measure: state.CountEvents},
		{ID: "users", Group: "d", Measure: state.Distinct, Tile: day, Keep: 30 * day, Values: 1000},
		{ID: "last", Group: "d", Measure: state.LastTimes, Tile: 1, Keep: 30 * day, Max: 100},
	}
	child := &state.Series{ID: "pair", Group: "du", Parent: "d", Measure: state.CountEvents, Tile: day, Keep: 30 * day}
	known := map[uint32]*state.Series{}
	for _, s := range series {
		known[s.Tag()] = s
	}
	var packer Packer
	now := int64(packedEpoch + 365*day)
	event := func(dst []byte, n int) []byte {
		at := now - int64(20-n)*day/2
		user := fmt.Appendf(nil, "u%06d", n%3)
		for i, s := range series {
			m := state.Mutation{Series: s, Tile: s.TileOf(at), Num: int64(n + 1)}
			if s.Measure.Member() != state.NoMember {
				m.Num, m.Text = at, &state.Text{Member: user}
			}
			if i == 0 {
				packer.Begin(s)
			} else {
				packer.Next(s)
			}
			packer.Add(&m)
			dst = packer.End(dst)
		}
		packer.Begin(child)
		packer.Add(&state.Mutation{Series: child, Tile: child.TileOf(at), Num: 1})
		return AppendChild(dst, Child{state.EmbeddingTag(child.Group), user, packer.End(nil)})
	}
	c := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return child } }}
	compact := func(dst, held []byte) []byte {
		made, err := c.Compact(dst, held, func(tag uint32) *state.Series { return known[tag] }, func(uint32) bool { return false }, now, Nonce{1})
		if err != nil {
			b.Fatal(err)
		}
		return made
	}
	var held []byte
	for n := range 20 {
		if held = event(held, n); n == 9 {
			held = compact(nil, held)
		}
	}
	room := make([]byte, 0, len(held))
	b.ReportAllocs()
	for b.Loop() {
		compact(room, held)
	}
}
