package packed

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// today is a day since 1970 that takes two bytes as a distance from the epoch of packed tiles.
const today = 20_750

// pack packs mutations of one series.
func pack(ops ...state.Mutation) []byte {
	var p Packer
	p.Begin(ops[0].Series)
	for i := range ops {
		p.Add(&ops[i])
	}
	return p.End(nil)
}

// What is most frequent takes the fewest bytes.
func TestBytesOfUsualMutations(t *testing.T) {
	count := &state.Series{ID: "count", Measure: state.CountEvents, Tile: day}
	set := &state.Series{ID: "set", Measure: state.Distinct, Type: value.String, Tile: day}
	for name, of := range map[string]struct {
		ops  []state.Mutation
		want int // of the body
	}{
		"an event":                 {[]state.Mutation{{Series: count, Tile: today, Num: 1}}, 2},
		"an event each day":        {[]state.Mutation{{Series: count, Tile: today, Num: 1}, {Series: count, Tile: today + 1, Num: 1}}, 3},
		"several events":           {[]state.Mutation{{Series: count, Tile: today, Num: 5}}, 3},
		"a value":                  {[]state.Mutation{{Series: set, Tile: today, Member: []byte("abc")}}, 1 + 3 + 2},
		"a value and an empty one": {[]state.Mutation{{Series: set, Tile: today, Member: []byte("abc")}, {Series: set, Tile: today}}, 1 + 3 + 2 + 1 + 2},
	} {
		if got := len(pack(of.ops...)) - tagSize - 1; got != of.want {
			t.Errorf("%s: %d bytes, want %d", name, got, of.want)
		}
	}
}
