package packed

import "github.com/weir-stream/weir/state"

// Overlay applies to the states of one entity what the events of a batch do to
// it. Held gives the state of a series to be changed, nil for one that is not
// wanted. An event whose identity the entity remembers has arrived meanwhile:
// it is passed over.
func Overlay(b *state.Batch, entity string, held func(*state.Series) State) {
	for i := range b.Updates {
		t := &b.Updates[i]
		if string(t.Entity) != entity {
			continue
		}
		if op := b.Identity(t); op != nil {
			if ids, ok := held(op.Series).(*dedupSet); ok && ids.has(op) {
				continue
			}
		}
		for j := t.From; j < t.To; j++ {
			if s := held(b.Mutations[j].Series); s != nil {
				s.Apply(&b.Mutations[j])
			}
		}
	}
}
