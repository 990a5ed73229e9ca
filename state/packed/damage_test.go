package packed

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/state"
)

var (
	soundSeries  = &state.Series{ID: "sound", Measure: state.CountEvents, Tile: day}
	brokenSeries = &state.Series{ID: "broken", Measure: state.Sum, Tile: day}
)

func soundOrBroken(tag uint32) *state.Series {
	for _, s := range []*state.Series{soundSeries, brokenSeries} {
		if s.Tag() == tag {
			return s
		}
	}
	return nil
}

// counted is a section that counts an event.
func counted(s *state.Series) []byte {
	var packer Packer
	packer.Begin(s)
	packer.Add(&state.Mutation{Series: s, Tile: 19700, Num: 1})
	return packer.End(nil)
}

// readsOf returns how many events each series has, or that it is damaged.
func readsOf(packed []byte) (text string) {
	for _, s := range []*state.Series{soundSeries, brokenSeries} {
		var v View
		i := v.Add(s)
		v.Begin()
		if err := v.Merge(packed); err != nil {
			text += fmt.Sprintf("%s damaged ", s.ID)
			continue
		}
		var got state.WindowState
		v.Read(i, &state.Read{Series: s, First: 19700, Last: 19700}, &got)
		for _, b := range got.Buckets {
			text += fmt.Sprint(s.ID, " ", b.Value.Num, " ")
		}
	}
	return text
}

// sectionsOf counts the sections with a tag.
func sectionsOf(packed []byte, of uint32) (n int) {
	_ = Sections(packed, func(tag uint32, _ []byte) error {
		if tag == of {
			n++
		}
		return nil
	})
	return n
}

// State that cannot be read is dropped when the key is compacted, and stays damaged after more is appended. Everything
// else is kept.
func TestDamageIsSetAside(t *testing.T) {
	brokenSum := slices.Clip(appendSection(nil, brokenSeries.Tag(), []byte{2}))
	for name, test := range map[string]struct {
		damage      []byte
		reads, more string // after the first compaction, and after one more event of each
		tags        []uint32
	}{
		"a section": {brokenSum, "sound 1 broken damaged ", "sound 2 broken damaged ", []uint32{brokenSeries.Tag()}},
		"both":      {append(brokenSum, "\x01\x02\x03\x7f"...), "sound damaged broken damaged ", "sound damaged broken damaged ", nil},
		"no end":    {[]byte("\x01\x02\x03\x7f"), "sound damaged broken damaged ", "sound damaged broken damaged ", nil},
		"no tag":    {[]byte("\x00\x00\x00\x00\x00"), "sound damaged broken damaged ", "sound damaged broken damaged ", nil},
		"a loss":    {appendSection(nil, LossTag, []byte("?")), "sound damaged broken damaged ", "sound damaged broken damaged ", nil},
		"a note":    {appendSection(nil, state.DamageTag, []byte("\x02abc")), "sound damaged broken damaged ", "sound damaged broken damaged ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			packed := slices.Concat(counted(soundSeries), counted(brokenSeries), test.damage)
			for i, want := range []string{test.reads, test.more} {
				made, err := new(Compactor).Compact(nil, packed, soundOrBroken, none, 19700*day, Nonce{byte(i)})
				if err == nil || !strings.HasPrefix(err.Error(), "the state is damaged: ") {
					t.Errorf("compaction %d: error %v, want that the state is damaged", i, err)
				}
				if got := readsOf(made); got != want {
					t.Errorf("compaction %d: %q is left, want %q", i, got, want)
				}
				for _, tag := range test.tags {
					if n := sectionsOf(made, tag); n > 0 {
						t.Errorf("compaction %d: %d sections of the damaged series are left, want none", i, n)
					}
				}
				if _, unpacked := Unpack(made, state.Secret{}, soundOrBroken); unpacked == nil || unpacked.Error() != err.Error() {
					t.Errorf("compaction %d has the error %v, but unpacking its result %v", i, err, unpacked)
				}
				packed = slices.Concat(made, counted(soundSeries), counted(brokenSeries))
			}
			kept := Salvaged(packed, soundOrBroken)
			if kept.Wrong == nil || !slices.Equal(kept.Tags, test.tags) || !strings.HasPrefix(readsOf(kept.Kept), "sound 3 ") {
				t.Errorf("salvaged %q without the tags %x, error %v", readsOf(kept.Kept), kept.Tags, kept.Wrong)
			}
			if strings.Contains(readsOf(kept.Kept), "damaged") {
				t.Error("the damage was salvaged, too")
			}
		})
	}
}

// The note of a damaged series goes with the series, once no definitions have it any more.
func TestDamageOfGarbage(t *testing.T) {
	damaged, err := new(Compactor).Compact(nil, appendSection(nil, brokenSeries.Tag(), []byte{2}), soundOrBroken, none, 0, Nonce{1})
	if err == nil || len(damaged) == 0 {
		t.Fatalf("the damaged series was compacted to %x, error %v; want it to be set aside", damaged, err)
	}
	if left, _ := new(Compactor).Compact(nil, damaged, func(uint32) *state.Series { return nil }, func(uint32) bool { return true }, 0, Nonce{2}); len(left) > 0 {
		t.Errorf("%x is left, want nothing", left)
	}
}

// Damage of very many series is noted as damage of everything, so that the note stays short.
func TestDamageIsBounded(t *testing.T) {
	var packed []byte
	for tag := range uint32(2 * maxDamagedTags) {
		packed = appendSection(packed, 0xff0000|tag, []byte{9})
	}
	made, err := new(Compactor).Compact(nil, packed, soundOrBroken, none, 0, Nonce{1})
	if err == nil || len(made) > 2*maxWrong || readsOf(made) != "sound damaged broken damaged " {
		t.Errorf("got %d bytes, error %v, state %s; want at most %d bytes with both series damaged", len(made), err, readsOf(made), 2*maxWrong)
	}
}

// A damaged child is damaged in its own key and in its parent's; the parent and other children are not.
func TestDamageOfChildren(t *testing.T) {
	const tag = 0xff1234
	c := Compactor{Children: func(uint32) func(uint32) *state.Series { return soundOrBroken }}
	child := func(name string, sections []byte) []byte { return AppendChild(nil, Child{tag, []byte(name), sections}) }
	for name, damage := range map[string][]byte{"a section": appendSection(nil, brokenSeries.Tag(), []byte{2}), "no end": []byte("\x01\x02\x03\x10")} {
		t.Run(name, func(t *testing.T) {
			parent := slices.Concat(counted(soundSeries), child("bad", damage), child("bad", counted(brokenSeries)), child("good", counted(brokenSeries)))
			of := func(own, parent []byte, name string) string {
				held, _, err := WithEmbedded(own, parent, tag, []byte(name))
				if err != nil {
					t.Fatal(err)
				}
				return readsOf(held)
			}
			if got := of(nil, parent, "bad"); !strings.Contains(got, "broken damaged") {
				t.Errorf("before a compaction the child is %q, want it damaged", got)
			}
			compact, err := c.Compact(nil, parent, soundOrBroken, none, 19700*day, Nonce{1})
			if err == nil || !strings.Contains(err.Error(), "embedded") {
				t.Errorf("the compaction has the error %v, want that of an embedded child", err)
			}
			if got := of(nil, compact, "bad"); !strings.Contains(got, "broken damaged") || readsOf(compact) != "sound 1 " || of(nil, compact, "good") != "broken 1 " {
				t.Errorf("the child is %q, its parent %q, the other child %q", got, readsOf(compact), of(nil, compact, "good"))
			}
			many := bytes.Clone(compact)
			for n := range 1000 {
				many = append(many, child(fmt.Sprint("c", n), counted(brokenSeries))...)
			}
			if _, err = c.Compact(nil, many, soundOrBroken, none, 19700*day, Nonce{2}); err == nil || len(c.Spilled) != 1002 {
				t.Fatalf("%d children are spilled, error %v; want 1002 and the damage", len(c.Spilled), err)
			}
			for _, s := range c.Spilled {
				if got := of(s.Sections, nil, string(s.Name)); strings.Contains(got, "damaged") != (string(s.Name) == "bad") {
					t.Errorf("the child %s is spilled as %q, want only bad to be damaged", s.Name, got)
				}
			}
		})
	}
}

// A child's own key that ends within a section does not hide what is embedded in its parent.
func TestUnendedKeysOfChildren(t *testing.T) {
	const tag = 0xff1234
	parent := AppendChild(nil, Child{tag, []byte("c"), counted(brokenSeries)})
	own := append([]byte("\x01\x02\x03"), byte(len(counted(brokenSeries))))
	held, _, err := WithEmbedded(own, parent, tag, []byte("c"))
	if got := readsOf(held); err != nil || !strings.Contains(got, "broken damaged") {
		t.Errorf("the child is %q, error %v; want it damaged", got, err)
	}
}

// State that the definitions do not have is cut off if nothing else makes the key short enough. That is recorded as a
// loss of everything applied so far.
func TestUnknownStateIsCut(t *testing.T) {
	const most, latest = 10_000, 5
	known := func(tag uint32) *state.Series {
		if s := soundOrBroken(tag); s == soundSeries {
			return s
		}
		return nil
	}
	var packed []byte
	for range 3000 {
		packed = append(packed, counted(brokenSeries)...)
		packed = AppendChild(packed, Child{0xff1234, []byte("c"), counted(brokenSeries)})
	}
	packed = append(packed, counted(soundSeries)...)
	c := Compactor{Most: most, Latest: latest}
	made, err := c.Compact(nil, packed, known, none, 0, Nonce{1})
	if err != nil || len(made) > most || !c.Cut {
		t.Fatalf("%d bytes are left, error %v", len(made), err)
	}
	if got := readsOf(made); got != "sound 1 " {
		t.Errorf("the state left is %q, want sound 1", got)
	}
	var losses Losses
	if err := Sections(made, func(tag uint32, body []byte) error {
		_, err := losses.Take(tag, body)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if lost := losses.Of(brokenSeries.Tag()); lost == nil || *lost != latest || losses.Of(soundSeries.Tag()) != nil {
		t.Errorf("the losses are %+v, want that of broken only", losses)
	}
	if of := losses.OfChildren(0xff1234).Of(1); of == nil || *of != latest {
		t.Errorf("the losses are %+v, want that of children", losses)
	}
	if _, err := (&Compactor{Most: len(packed)}).Compact(nil, packed, known, none, 0, Nonce{1}); err != nil {
		t.Error(err)
	}
}

// A header identifies no more bytes than its compaction left.
func TestIdentified(t *testing.T) {
	for _, size := range []int{headerSize, 300, 1<<19 - 1, 1 << 19, 1<<19 + 1, 1<<20 - 1, 1<<20 + 3, 5_000_001} {
		packed := make([]byte, size)
		putHeader(packed, size, Nonce{1})
		if got := Identified(append(packed, "more"...)); got > size || got < size-size>>(lengthBits-1) {
			t.Errorf("%d of %d bytes are identified", got, size)
		}
		if got := Identified(packed[:size/2]); size > headerSize && got != 0 {
			t.Errorf("of the first half of %d bytes %d are identified, want none", size, got)
		}
	}
	if Identified(nil) != 0 || Identified([]byte("never compacted")) != 0 {
		t.Error("bytes without a header are identified")
	}
}
