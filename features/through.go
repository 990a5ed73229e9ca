package features

import (
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Through is the basis of a feature that goes through a list (multi-hop): the members of a set are
// the entities of the second hop, which is answered for all of them together. The feature's keys
// are those of Set, its series those of both hops, and everything else is that of Each.
type Through struct {
	Set  *Feature // answers with the list of members
	Name string   // of Set if it is a named feature; empty for a call
	Each *Feature // what is asked of the members; it is by their field
	Max  int      // how many members are asked about, from the list's start
}

// Parts are both hops.
func (t *Through) Parts() []*Feature { return []*Feature{t.Set, t.Each} }

func (t *Through) valueType(*Feature) value.Type            { return t.Each.Type() }
func (t *Through) scale(*Feature) uint8                     { return t.Each.Scale() }
func (t *Through) shape(*Feature) aggregate.Shape           { return t.Each.Shape() }
func (t *Through) membership(*Feature) aggregate.Membership { return t.Each.Membership() }
func (t *Through) forgets(*Feature) bool                    { return t.Set.Forgets() || t.Each.Forgets() }
func (t *Through) fanOut() int                              { return t.Max }
func (t *Through) key(_ *Feature, name string) record.Field { return t.Set.Key(name) }
func (t *Through) retain(*Feature) []state.Retained         { return retainedBy(t.Parts()) }

func (t *Through) askedAbout(asked *Feature, members []value.Value) {
	through := *t
	through.Each = t.Each.AskedAbout(members)
	asked.Basis, asked.Call = &through, through.Each.Call
}
