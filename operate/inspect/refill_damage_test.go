package inspect

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// State that a compaction has set aside is refilled like state that is still damaged: its note is removed, and the
// other series stay.
func TestRefillOfDamageSetAside(t *testing.T) {
	sound := &state.Series{ID: "sound", Measure: state.CountEvents, Tile: 1000}
	broken := &state.Series{ID: "broken", Measure: state.Sum, Tile: 1000}
	of := &group{series: []*state.Series{sound, broken}}
	var packer packed.Packer
	packer.Begin(sound)
	packer.Add(&state.Mutation{Series: sound, Tile: 1, Num: 1})
	whole := packer.End(nil)
	tag := broken.Tag()
	held := append(whole, byte(tag>>16), byte(tag>>8), byte(tag), 1, 2)
	compacted, err := new(packed.Compactor).Compact(nil, held, of.tagged, func(uint32) bool { return false }, 0, packed.Nonce{1})
	if err == nil {
		t.Fatal("nothing is damaged")
	}
	r := &refilling{dropping: &dropping{group: of}}
	kept, lacks := r.lacking(packed.Held{Packed: compacted})
	if !lacks || kept.Wrong == nil || !strings.HasPrefix(kept.Wrong.Error(), "the state is damaged: ") || len(kept.Tags) != 1 || kept.Tags[0] != tag {
		t.Errorf("lacking = %v with tags %x, damage %v; want one tag and the damage", lacks, kept.Tags, kept.Wrong)
	}
	parts, err := packed.Unpack(kept.Kept, state.Secret{}, of.tagged)
	if err != nil || len(parts) != 1 || parts[0].Series != sound {
		t.Errorf("the parts kept are %+v, error %v; want only the sound one", parts, err)
	}
}
