package packed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
)

// Whatever operations on a child are embedded, compacted and spilled, all that is held of it
// is what the operations make, to the bit, for every layout.
func TestSpilledIsWhole(t *testing.T) {
	const tag, group = 0xff1234, "child"
	for _, s := range everySeries() {
		t.Run(fmt.Sprint(s.Measure, s.Per), func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, 6))
			var packer Packer
			compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return s } }}
			var own, parent, all []byte
			spills := 0
			for range 400 {
				packer.Begin(s)
				packer.Add(randomOp(random, s))
				section := packer.End(nil)
				all = append(all, section...)
				parent = AppendChild(parent, Child{tag, []byte("c"), section})
				parent = AppendChild(parent, Child{tag, []byte("other"), section})
				if random.IntN(4) > 0 {
					continue
				}
				compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, none, 0, Nonce{1})
				if err != nil {
					t.Fatal(err)
				}
				parent = compact
				for _, c := range compactor.Spilled {
					if spills++; string(c.Name) == "c" {
						own = append(own, c.Sections...)
					}
				}
			}
			held, losses, err := WithEmbedded(own, parent, tag, []byte("c"))
			if err != nil || losses != nil {
				t.Fatal(losses, err)
			}
			want, got := merged(t, s, all), merged(t, s, held)
			if !bytes.Equal(want, got) {
				t.Errorf("%d spills, got\n%x\nwant\n%x", spills, got, want)
			}
		})
	}
}

func merged(t *testing.T, s *state.Series, data []byte) []byte {
	t.Helper()
	held := New(s)
	if err := Sections(data, func(_ uint32, body []byte) error { return held.Merge(body) }); err != nil {
		t.Fatal(err)
	}
	return held.Append(nil)
}

// Children of a group that is not known stay where they are, however long.
func TestUnknownChildrenStay(t *testing.T) {
	long := bytes.Repeat([]byte{1, 2, 3, 0}, MaxEmbedded)
	parent := AppendChild(nil, Child{0xff0001, []byte("c"), long})
	compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return nil }}
	compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, none, 0, Nonce{1})
	if err != nil || compactor.Spilled != nil || !bytes.Equal(compact[headerSize:], parent) {
		t.Errorf("%d bytes of %d are left, %v", len(compact), len(parent), err)
	}
}

// A child that nothing is left of is gone.
func TestChildrenArePruned(t *testing.T) {
	s := everySeries()[0]
	var packer Packer
	packer.Begin(s)
	op := randomOp(rand.New(rand.NewPCG(1, 1)), s)
	op.Tile = 1
	packer.Add(op)
	parent := AppendChild(nil, Child{0xff0001, []byte("c"), packer.End(nil)})
	compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return s } }}
	compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, none, 1000*day, Nonce{1})
	if err != nil || len(compact) != 0 {
		t.Errorf("%x is left, %v", compact, err)
	}
}

// What a parent lost concerns the children that it may have been about.
func TestLossesOfParents(t *testing.T) {
	for name, test := range map[string]struct {
		tags []uint32
		lost bool
	}{
		"everything": {nil, true}, "the parent's own series": {[]uint32{0x010203}, false}, "the children": {[]uint32{0x010203, 0xff0001}, true},
	} {
		before, after := PackLoss(nil, test.tags, Nonce{1})
		parent := slices.Concat(before, []byte("0000000000000042"), after)
		_, losses, err := WithEmbedded(nil, parent, 0xff0001, []byte("c"))
		until := losses.Of(0x777777)
		if err != nil || (until != nil) != test.lost || test.lost && *until != 42 {
			t.Errorf("%s: %v, %v", name, until, err)
		}
	}
}

// A series that is known is not dropped from a child as dead, whether it is folded there or not: the list
// of the dead may be of before it came back.
func TestKnownSeriesOfChildrenAreNotDead(t *testing.T) {
	for _, s := range everySeries() {
		var packer Packer
		packer.Begin(s)
		packer.Add(randomOp(rand.New(rand.NewPCG(1, 1)), s))
		parent := AppendChild(nil, Child{0xff0001, []byte("c"), packer.End(nil)})
		for _, known := range []*state.Series{s, nil} {
			compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return known } }}
			compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, func(uint32) bool { return true }, 0, Nonce{1})
			if err != nil || (len(compact) > 0) != (known != nil) {
				t.Errorf("%s, known: %t: %d bytes are left, %v", s.Measure, known != nil, len(compact), err)
			}
		}
	}
}

// Children whose names are cut off are dropped with all of their group, and nothing else is.
func TestSalvagedChildren(t *testing.T) {
	const broken, sound = 0xff0001, 0xff0002
	parent := AppendChild(nil, Child{sound, []byte("c"), nil})
	kept := slices.Clone(parent)
	parent = appendSection(parent, broken, []byte{9, 'c'})
	got := Salvaged(parent, func(uint32) *state.Series { return nil })
	if got.Wrong == nil || !slices.Equal(got.Tags, []uint32{broken}) || !bytes.Equal(got.Kept, kept) {
		t.Errorf("%+v, want %x without %x", got, kept, broken)
	}
}
