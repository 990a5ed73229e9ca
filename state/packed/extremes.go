package packed

import (
	"encoding/binary"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// extremes hold one value for each tile, chosen by the series' measure. Packed, each is the
// distance from the previous tile, the time of the value's event since the tile's begin (0 if the
// measure does not use it), its length and the value.
type extremes struct {
	series *state.Series
	byTile[extreme]
}

func init() {
	packings[state.Extremes] = packing{
		empty: func(s *state.Series, _ state.Secret) State {
			return &extremes{series: s}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ state.Secret) ([]byte, int64) {
			return appendExtreme(dst, mutation.Series, mutation.Tile, before, extreme{mutation.Num, mutation.Member}), mutation.Tile
		},
	}
}

type extreme struct {
	time  int64
	value []byte
}

func (p *extremes) Apply(mutation *state.Mutation) {
	p.meet(mutation.Tile, mutation.Num, mutation.Member)
}

func (p *extremes) meet(tile, time int64, value []byte) {
	c, held := p.at(tile)
	if !held || p.series.Measure.Replaces(state.Candidate{Time: time, Value: value}, state.Candidate{Time: c.time, Value: c.value}) {
		*c = extreme{time, slices.Clone(value)}
	}
}

func (p *extremes) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(p.series)
	for r.more() {
		tile += r.varint()
		time := r.varint() + tile*p.series.Tile
		value := r.bytes(r.uvarint())
		if _, err := p.read(value); err != nil {
			r.fail()
		}
		if r.err == nil {
			p.meet(tile, time, value)
		}
	}
	return r.err
}

func (p *extremes) Append(dst []byte) []byte {
	before := firstTile(p.series)
	for _, c := range p.buckets {
		dst = appendExtreme(dst, p.series, c.tile, before, c.content)
		before = c.tile
	}
	return dst
}

func appendExtreme(dst []byte, s *state.Series, tile, before int64, p extreme) []byte {
	dst = binary.AppendVarint(dst, tile-before)
	dst = binary.AppendVarint(dst, p.time-tile*s.Tile)
	dst = binary.AppendUvarint(dst, uint64(len(p.value)))
	return append(dst, p.value...)
}

func (p *extremes) Read(r *state.Read) (out state.WindowState) {
	for _, c := range p.within(r.First, r.Last) {
		v, _ := p.read(c.content.value) // Merge has decoded it, or Apply encoded it
		out.Buckets = append(out.Buckets, state.Bucket{Tile: c.tile, Value: v})
	}
	return out
}

// read decodes a value.
func (p *extremes) read(val []byte) (value.Value, error) {
	if p.series.Measure.Member() == state.TextMember {
		return value.Value{Type: value.String, Str: val}, nil
	}
	return state.ReadValue(p.series.Type, p.series.Scale, val)
}
