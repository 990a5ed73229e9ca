package features

import (
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// MultiHop is the basis of a feature that goes through a list: the members of a set are the entities of the second hop,
// which is answered for all of them together. The feature has the keys of Set, the series of both hops, and everything
// else from Each.
type MultiHop struct {
	Set  *Feature // answers with the list of members
	Name string   // of Set if it is a named feature; empty for a call
	Each *Feature // what is asked of the members; it is by their field
	Max  int      // how many members are asked about, from the list's start
}

// Parts returns both hops.
func (m *MultiHop) Parts() []*Feature { return []*Feature{m.Set, m.Each} }

func (m *MultiHop) valueType(*Feature) value.Type            { return m.Each.Type() }
func (m *MultiHop) scale(*Feature) uint8                     { return m.Each.Scale() }
func (m *MultiHop) shape(*Feature) aggregate.Shape           { return m.Each.Shape() }
func (m *MultiHop) membership(*Feature) aggregate.Membership { return m.Each.Membership() }
func (m *MultiHop) meaning(*Feature) string                  { return m.Each.Meaning() + " in the " + m.Set.Meaning() }
func (m *MultiHop) forgets(*Feature) bool                    { return m.Set.Forgets() || m.Each.Forgets() }
func (m *MultiHop) fanOut() int                              { return m.Max }
func (m *MultiHop) key(_ *Feature, name string) record.Field { return m.Set.Key(name) }
func (m *MultiHop) retain(*Feature) []state.Retained         { return retainedBy(m.Parts()) }

func (m *MultiHop) askedAbout(asked *Feature, members []value.Value) {
	about := *m
	about.Each = m.Each.AskedAbout(members)
	asked.Basis, asked.Call = &about, about.Each.Call
}
