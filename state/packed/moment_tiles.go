package packed

import (
	"encoding/binary"
	"math"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// momentTiles are the moments of values by tile. Packed, each is the distance from the previous tile, the number of
// values, and their mean, as a float, or their sum, as a varint; for more than one value the sum of squared deviations,
// as a float, or of squares, as a varint, follows.
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
			return appendMoments(dst, mutation.Series, mutation.Tile-before, mutation.MomentsOf()), mutation.Tile
		},
	}
}

func (s *momentTiles) Apply(mutation *state.Mutation) {
	s.add(mutation.Tile, mutation.MomentsOf())
}

func (s *momentTiles) add(tile int64, m state.Moments) {
	held, _ := s.at(tile)
	*held = held.Add(m)
}

func (s *momentTiles) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(s.series)
	for r.more() {
		tile += r.varint()
		m := readMoments(&r, s.series)
		if r.err == nil {
			s.add(tile, m)
		}
	}
	return r.err
}

func (s *momentTiles) Append(dst []byte) []byte {
	before := firstTile(s.series)
	for _, c := range s.buckets {
		dst = appendMoments(dst, s.series, c.tile-before, c.content)
		before = c.tile
	}
	return dst
}

func appendMoments(dst []byte, s *state.Series, distance int64, m state.Moments) []byte {
	dst = binary.AppendVarint(dst, distance)
	dst = binary.AppendUvarint(dst, uint64(m.N))
	if floats(s) {
		if dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(m.Mean)); m.N > 1 {
			dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(m.Squares))
		}
		return dst
	}
	var sum value.Value
	m.Sum.Set(&sum)
	if dst = appendWideVarint(dst, sum.Num, sum.Carry); m.N > 1 {
		dst = appendSquares(dst, m.SquareSum)
	}
	return dst
}

// readMoments reads what appendMoments has written after the distance.
func readMoments(r *decoder, s *state.Series) (m state.Moments) {
	if m.N = int64(r.uvarint()); m.N <= 0 {
		r.fail()
	}
	if floats(s) {
		if m.Mean = r.float(); m.N > 1 {
			m.Squares = r.float()
		}
		return m
	}
	var sum value.Value
	sum.Num, sum.Carry = r.wideVarint()
	switch {
	case m.N > 1:
		m.Sum, m.SquareSum = value.IntSumOf(sum), r.squares()
	case sum.Wide():
		r.fail()
	default:
		m.Sum.Add(sum.Num)
		m.SquareSum.Add(sum.Num)
	}
	return m
}

// appendSquares appends a sum of squares as a varint.
func appendSquares(dst []byte, s value.SquareSum) []byte {
	for s[1]|s[2] != 0 {
		dst = append(dst, byte(s[0])|0x80)
		s[0], s[1], s[2] = s[0]>>7|s[1]<<57, s[1]>>7|s[2]<<57, s[2]>>7
	}
	return binary.AppendUvarint(dst, s[0])
}

// squares reads what appendSquares has written.
func (r *decoder) squares() (s value.SquareSum) {
	const most = 28 // bytes of 192 bits
	for n := range min(most, r.rest()) {
		b := r.packed[r.at+n]
		word, shift := 7*n/64, 7*n%64
		s[word] |= uint64(b&0x7f) << shift
		if over := uint64(b&0x7f) >> (64 - shift); over != 0 {
			if word+1 == len(s) {
				break // more than 192 bits
			}
			s[word+1] = over
		}
		if b < 0x80 {
			r.at += n + 1
			return s
		}
	}
	r.fail()
	return value.SquareSum{}
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
