package packed

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// today is a day since 1970 that takes two bytes as a distance from the epoch of packed tiles.
const today = 20_750

// pack packs mutations of one series.
func pack(mutations ...state.Mutation) []byte {
	var p Packer
	p.Begin(mutations[0].Series)
	for i := range mutations {
		p.Add(&mutations[i])
	}
	return p.End(nil)
}

// Sections that follow one another share an equal body.
func TestEqualBodiesArePackedOnce(t *testing.T) {
	var list []*state.Series
	for _, id := range []string{"all", "some", "others", "more"} {
		list = append(list, &state.Series{ID: id, Measure: state.Sum, Type: value.Int, Tile: day})
	}
	known := func(tag uint32) *state.Series {
		return list[slices.IndexFunc(list, func(s *state.Series) bool { return s.Tag() == tag })]
	}
	var p Packer
	var packed, whole []byte
	for i, num := range []int64{7, 7, 7, 8} {
		mutation := state.Mutation{Series: list[i], Tile: today, Num: num}
		if i == 0 {
			p.Begin(mutation.Series)
		} else {
			p.Next(mutation.Series)
		}
		p.Add(&mutation)
		packed = p.End(packed)
		whole = append(whole, pack(mutation)...)
	}
	const body = 3 // a tile and a number
	if len(packed) != len(whole)-2*body {
		t.Errorf("took %d bytes, want 2 bodies of %d bytes less than %d", len(packed), body, len(whole))
	}
	compact := func(packed []byte) []byte {
		compacted, err := new(Compactor).Compact(nil, packed, known, none, 0, Nonce{1})
		if err != nil {
			t.Fatal(err)
		}
		return compacted
	}
	if got, want := compact(packed), compact(whole); !bytes.Equal(got, want) {
		t.Errorf("compacted to\n%x\nwant\n%x", got, want)
	}
}

// A section that does not follow the packer's last one has its own body.
func TestSectionThatBeginsHasABody(t *testing.T) {
	var p Packer
	mutation := state.Mutation{Series: everySeries()[0], Tile: today, Num: 1}
	var packed []byte
	for _, begin := range []func(*state.Series){p.Begin, p.Next, p.Begin} {
		begin(mutation.Series)
		p.Add(&mutation)
		packed = p.End(nil)
	}
	if want := pack(mutation); !bytes.Equal(packed, want) {
		t.Errorf("got %x, want %x", packed, want)
	}
}

func TestFirstSectionWithoutABody(t *testing.T) {
	err := Sections([]byte{1, 2, 3, 0}, func(uint32, []byte) error { return nil })
	if want := "the section at byte 0 has the body of the one before, but is the first"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// What is most frequent takes the fewest bytes.
func TestBytesOfUsualMutations(t *testing.T) {
	count := &state.Series{ID: "count", Measure: state.CountEvents, Tile: day}
	set := &state.Series{ID: "set", Measure: state.Distinct, Type: value.String, Tile: day}
	for name, of := range map[string]struct {
		mutations []state.Mutation
		want      int // of the body
	}{
		"an event":                 {[]state.Mutation{{Series: count, Tile: today, Num: 1}}, 2},
		"an event each day":        {[]state.Mutation{{Series: count, Tile: today, Num: 1}, {Series: count, Tile: today + 1, Num: 1}}, 3},
		"several events":           {[]state.Mutation{{Series: count, Tile: today, Num: 5}}, 3},
		"a value":                  {[]state.Mutation{{Series: set, Tile: today, Text: &state.Text{Member: []byte("abc")}}}, 1 + 3 + 2},
		"a value and an empty one": {[]state.Mutation{{Series: set, Tile: today, Text: &state.Text{Member: []byte("abc")}}, {Series: set, Tile: today, Text: new(state.Text)}}, 1 + 3 + 2 + 1 + 2},
	} {
		if got := len(pack(of.mutations...)) - tagSize - 1; got != of.want {
			t.Errorf("%s: %d bytes, want %d", name, got, of.want)
		}
	}
}
