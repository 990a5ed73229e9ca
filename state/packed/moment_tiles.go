package packed

import (
	"encoding/binary"
	"math"

	"github.com/weir-stream/weir/state"
)

// momentTiles are the moments of values by tile. Packed, each is the distance from the previous tile, the number of
// values, their mean, and for more than one value the sum of squared deviations.
type momentTiles struct {
	series *state.Series
	byTile[state.Moments]
}

func init() {
	packings[state.MomentTiles] = packing{
		empty: func(s *state.Series, _ state.Secret) State {
			return &momentTiles{series: s}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ state.Secret) ([]byte, int64) {
			return appendMoments(dst, mutation.Tile-before, state.MomentsOf(math.Float64frombits(uint64(mutation.Num)))), mutation.Tile
		},
	}
}

func (s *momentTiles) Apply(mutation *state.Mutation) {
	s.add(mutation.Tile, state.MomentsOf(math.Float64frombits(uint64(mutation.Num))))
}

func (s *momentTiles) add(tile int64, m state.Moments) {
	held, _ := s.at(tile)
	*held = held.Add(m)
}

func (s *momentTiles) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(s.series)
	for r.more() {
		tile += r.varint()
		n := r.uvarint()
		m := state.Moments{N: int64(n), Mean: r.float()}
		if n > 1 {
			m.Squares = r.float()
		}
		if m.N <= 0 {
			r.fail()
		}
		if r.err == nil {
			s.add(tile, m)
		}
	}
	return r.err
}

func (s *momentTiles) Append(dst []byte) []byte {
	before := firstTile(s.series)
	for _, c := range s.buckets {
		dst = appendMoments(dst, c.tile-before, c.content)
		before = c.tile
	}
	return dst
}

func appendMoments(dst []byte, distance int64, m state.Moments) []byte {
	dst = binary.AppendVarint(dst, distance)
	dst = binary.AppendUvarint(dst, uint64(m.N))
	dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(m.Mean))
	if m.N > 1 {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(m.Squares))
	}
	return dst
}

func (s *momentTiles) Read(r *state.Read) (out state.WindowState) {
	for _, c := range s.within(r.First, r.Last) {
		out.Moments = out.Moments.Add(c.content)
		out.AtEnd = c.tile == r.Last
	}
	return out
}

func (s *momentTiles) entries() (list []Entry) {
	for _, c := range s.buckets {
		list = append(list, Entry{Tiles: []int64{c.tile}, Moments: c.content})
	}
	return list
}
