package packed

import (
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Entries lists the items of every layout.
func TestEveryStateHasEntries(t *testing.T) {
	measures := map[state.Measure]value.Type{state.Record: value.Null, state.RememberID: value.Null}
	for _, function := range aggregate.All {
		tiled, ok := function.(aggregate.Mergeable)
		if !ok {
			continue
		}
		types := append([]value.Type{value.Null}, function.Spec().Types...)
		for _, typ := range types[min(1, len(types)-1):] {
			for _, m := range tiled.Measures(aggregate.Call{Type: typ, Max: 10}) {
				measures[m] = typ
			}
		}
	}
	var all []*state.Series
	for m, typ := range measures {
		if m == state.Earliest || m == state.Latest {
			typ = value.Timestamp
		}
		s := &state.Series{ID: "abcde", Measure: m, Type: typ, Tile: 1000, Max: 10, Rate: 0.01}
		all = append(all, s)
		if _, ok := New(s).(tiled); ok {
			apart := *s
			apart.Per = "user"
			all = append(all, &apart)
		}
	}
	for _, s := range all {
		m := s.Measure
		mutation := state.Mutation{Series: s, Tile: 5, Num: 7, Text: &state.Text{Member: []byte("x")}}
		switch m {
		case state.Record:
			mutation.Member = state.AppendLogRecord(nil, state.AppendLogTime(nil, 5000))
		case state.FirstValue, state.LastValue:
			mutation.Member = state.AppendValue(nil, value.Value{Type: s.Type, Str: []byte("x"), Num: 7})
		}
		if s.Per != "" {
			mutation.Key = []byte("u")
		}
		var p Packer
		p.Begin(s)
		p.Add(&mutation)
		packed := p.End(nil)
		p.Begin(s)
		p.Add(&mutation)
		packed = p.End(packed)
		packed = appendSection(packed, s.Tag()+1, []byte("others"))
		parts, err := Unpack(packed, state.Secret{}, func(tag uint32) *state.Series {
			if tag == s.Tag() {
				return s
			}
			return nil
		})
		if err != nil || len(parts) != 2 || parts[0].Sections != 2 || parts[1].Sections != 1 || parts[1].State != nil ||
			parts[0].Bytes+parts[1].Bytes != len(packed) {
			t.Errorf("%v: unexpected parts %+v, error %v", m, parts, err)
			continue
		}
		list, cut, err := Entries(s, parts[0].State)
		if err != nil || cut != nil || len(list) == 0 {
			t.Errorf("%v: unexpected entries %v, cut %v, error %v", m, list, cut, err)
			continue
		}
		e := list[0]
		if e.Member == nil && e.Value.IsNull() && e.Registers == 0 && e.Hashes == 0 && e.Moments.N == 0 && e.Record == nil {
			t.Errorf("%v: an entry is empty: %+v", m, e)
		}
		if s.Per != "" && (e.Key == nil || *e.Key != "u") {
			t.Errorf("%v: an entry has no key: %+v", m, e)
		}
	}
}

func TestEntriesOfADenseSketch(t *testing.T) {
	s := &state.Series{Measure: state.Approx, Tile: 1000}
	st := New(s)
	for i := range 5000 {
		st.Apply(&state.Mutation{Series: s, Tile: 1, Text: &state.Text{Member: []byte{byte(i >> 8), byte(i)}}})
	}
	list, _, err := Entries(s, st)
	if err != nil || len(list) != 1 || list[0].Estimate < 4800 || list[0].Estimate > 5200 || list[0].Registers < 3000 ||
		list[0].Registers > 5000 {
		t.Errorf("unexpected entries %+v, error %v", list, err)
	}
}
