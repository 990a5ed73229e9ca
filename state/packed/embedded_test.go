package packed

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
)

// The state of a child equals the mutations applied, to the bit, for every layout and every order of embedding,
// compacting and spilling.
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
				packer.Add(randomMutation(random, s))
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
				t.Errorf("after %d spills, got\n%x\nwant\n%x", spills, got, want)
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

// Children of an unknown group stay embedded at any length.
func TestUnknownChildrenStay(t *testing.T) {
	long := bytes.Repeat([]byte{1, 2, 3, 1, 9}, maxEmbedded)
	parent := AppendChild(nil, Child{0xff0001, []byte("c"), long})
	compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return nil }}
	compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, none, 0, Nonce{1})
	if err != nil || compactor.Spilled != nil || !bytes.Equal(compact[headerSize:], parent) {
		t.Errorf("%d of %d bytes are left, error %v; want all", len(compact), len(parent), err)
	}
}

// A child without any state left is dropped.
func TestChildrenArePruned(t *testing.T) {
	s := everySeries()[0]
	var packer Packer
	packer.Begin(s)
	mutation := randomMutation(rand.New(rand.NewPCG(1, 1)), s)
	mutation.Tile = 1
	packer.Add(mutation)
	parent := AppendChild(nil, Child{0xff0001, []byte("c"), packer.End(nil)})
	compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return s } }}
	compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, none, 1000*day, Nonce{1})
	if err != nil || len(compact) != 0 {
		t.Errorf("%x is left, error %v; want nothing", compact, err)
	}
}

// A loss of a parent concerns all children that may have been lost.
func TestLossesOfParents(t *testing.T) {
	for name, test := range map[string]struct {
		tags []uint32
		lost bool
	}{
		"everything": {nil, true}, "the parent's own series": {[]uint32{0x010203}, false}, "the children": {[]uint32{0x010203, 0xff0001}, true},
		"a series of the children":      {[]uint32{0xff0002, 0x010203, 0xff0001, 0x777777}, true},
		"another series of them":        {[]uint32{0x777777, 0xff0001, 0x010203}, false},
		"a series of others' children":  {[]uint32{0xff0001, 0x010203, 0xff0002, 0x777777}, false},
		"all of others, and one behind": {[]uint32{0xff0002, 0xff0001, 0x777777}, true},
	} {
		before, after := PackLoss(nil, Loss{Mark: Mark{7}, Tags: test.tags}, Nonce{1})
		parent := slices.Concat(before, []byte("0000000000000042"), after)
		_, losses, err := WithEmbedded(nil, parent, 0xff0001, []byte("c"))
		until := losses.Of(0x777777)
		if err != nil || (until != nil) != test.lost || test.lost && *until != 42 {
			t.Errorf("%s: lost until %v, error %v; want a loss: %v", name, until, err, test.lost)
		}
	}
}

// A known series of a child is not dropped as garbage, whether it is compacted there or not: definitions may have
// brought it back after the list of garbage was read.
func TestKnownSeriesOfChildrenAreNotGarbage(t *testing.T) {
	for _, s := range everySeries() {
		var packer Packer
		packer.Begin(s)
		packer.Add(randomMutation(rand.New(rand.NewPCG(1, 1)), s))
		parent := AppendChild(nil, Child{0xff0001, []byte("c"), packer.End(nil)})
		for _, known := range []*state.Series{s, nil} {
			compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return known } }}
			compact, err := compactor.Compact(nil, parent, func(uint32) *state.Series { return nil }, func(uint32) bool { return true }, 0, Nonce{1})
			if err != nil || (len(compact) > 0) != (known != nil) {
				t.Errorf("%s, known: %t: %d bytes are left, error %v", s.Measure, known != nil, len(compact), err)
			}
		}
	}
}

// Children with truncated names are dropped with their whole group, and nothing else is.
func TestSalvagedChildren(t *testing.T) {
	const broken, sound = 0xff0001, 0xff0002
	parent := AppendChild(nil, Child{sound, []byte("c"), nil})
	kept := slices.Clone(parent)
	parent = appendSection(parent, broken, []byte{9, 'c'})
	got := Salvaged(parent, func(uint32) *state.Series { return nil })
	if got.Wrong == nil || !slices.Equal(got.Tags, []uint32{broken}) || !bytes.Equal(got.Kept, kept) {
		t.Errorf("salvaged %+v, want %x without %x", got, kept, broken)
	}
}

// A parent that waits for a refill keeps its children, because their own keys are to be replaced;
// if there are too many, they are spilled, and the mark of the refill is removed. The same happens
// when a child is taken out.
func TestMarksKeepChildren(t *testing.T) {
	series := everySeries()[0]
	mark, kept := NewMark(), AppendLoss(nil, Loss{Until: 5, Mark: NewMark()})
	compactor := Compactor{Children: func(uint32) func(uint32) *state.Series { return func(uint32) *state.Series { return nil } }}
	known := func(uint32) *state.Series { return nil }
	child := func(size int) []byte {
		return AppendChild(nil, Child{0xff0001, []byte("c"), appendSection(nil, series.Tag(), make([]byte, size))})
	}
	for name, test := range map[string]struct {
		loss           Loss
		size           int
		spills, marked bool
	}{
		"few":                 {Loss{Until: 7, Mark: mark}, 100, false, true},
		"many":                {Loss{Until: 7, Mark: mark, Tags: []uint32{9 << 16}}, maxEmbedded, false, true},
		"very many":           {Loss{Until: 7, Mark: mark}, maxEmbeddedMarked, true, false},
		"many without a mark": {Loss{Until: 7}, maxEmbedded, true, false},
	} {
		held := append(AppendLoss(nil, test.loss), child(test.size)...)
		compact, err := compactor.Compact(nil, append(make([]byte, headerSize), held...), known, none, 0, Nonce{1})
		if err != nil || (len(compactor.Spilled) > 0) != test.spills {
			t.Errorf("%s: %d children are spilled, error %v", name, len(compactor.Spilled), err)
		}
		if marked := bytes.Contains(compact, mark[:]); marked != test.marked {
			t.Errorf("%s: the key is marked: %t, want the opposite", name, marked)
		}
		var losses Losses
		if err := Sections(compact, func(tag uint32, body []byte) error { _, err := losses.Take(tag, body); return err }); err != nil ||
			len(losses) != 1 || losses[0].Until != 7 || !slices.Equal(losses[0].Tags, test.loss.Tags) {
			t.Errorf("%s: the losses are %+v, error %v", name, losses, err)
		}
	}
	parent := append(append(make([]byte, headerSize), kept...), child(1)...)
	left, err := WithoutEmbedded(parent, 0xff0001, []byte("c"), Nonce{1})
	if err != nil || bytes.Contains(left, kept) || len(left) != headerSize+len(kept) {
		t.Errorf("%x is left of %x, error %v", left, parent, err)
	}
}
