package packed

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
)

// sketches are HyperLogLogs by tile. Packed, each is the distance from the previous tile, then the
// sketch.
type sketches struct {
	series *state.Series
	secret state.Secret
	tiles  map[int64]*hyperLogLog
	spare  []*hyperLogLog // empty ones, from dropped tiles
}

func init() {
	packings[state.Sketches] = packing{
		empty: func(s *state.Series, secret state.Secret) State {
			return &sketches{series: s, secret: secret, tiles: map[int64]*hyperLogLog{}}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) ([]byte, int64) {
			return appendSketchMutation(dst, mutation.Tile-before, secret.Hash(mutation.Member)), mutation.Tile
		},
	}
}

func (s *sketches) Apply(mutation *state.Mutation) {
	s.at(mutation.Tile).add(s.secret.Hash(mutation.Member))
}

func (s *sketches) at(tile int64) *hyperLogLog {
	h := s.tiles[tile]
	if h == nil {
		if n := len(s.spare); n > 0 {
			h, s.spare = s.spare[n-1], s.spare[:n-1]
		} else {
			h = &hyperLogLog{}
		}
		s.tiles[tile] = h
	}
	return h
}

func (s *sketches) empty() {
	for tile, h := range s.tiles {
		h.empty()
		s.spare = append(s.spare, h)
		delete(s.tiles, tile)
	}
}

func (s *sketches) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(s.series)
	for r.more() {
		if tile += r.varint(); r.err == nil {
			s.at(tile).unpack(&r)
		}
	}
	return r.err
}

func (s *sketches) Append(dst []byte) []byte { return appendTiles(dst, s.series, s.tiles) }

// appendSketchMutation packs a sketch of one value, given its hash.
func appendSketchMutation(dst []byte, distance int64, hash uint64) []byte {
	dst = binary.AppendVarint(dst, distance)
	register, rank := registerOf(hash)
	return binary.AppendUvarint(append(dst, 1), uint64(packedRegister(register, rank)))
}

func (s *sketches) Read(r *state.Read) state.WindowState {
	var union hyperLogLog
	found := false
	for tile, h := range s.tiles {
		if r.First <= tile && tile <= r.Last {
			union.merge(h)
			found = true
		}
	}
	if !found {
		return state.WindowState{}
	}
	windowState := state.WindowState{Count: union.count(), AtEnd: s.tiles[r.Last] != nil}
	if union.coarser > 0 {
		windowState.StandardError = union.standardError()
	}
	return windowState
}

// squeeze halves the registers of the finest sketches.
func (s *sketches) squeeze() bool {
	finest := uint8(hllBits)
	for _, h := range s.tiles {
		finest = min(finest, h.coarser)
	}
	if finest >= hllBits-hllLeastBits {
		return false
	}
	for _, h := range s.tiles {
		h.coarsen(finest + 1)
	}
	return true
}

func (s *sketches) Prune(first int64) (empty bool) { return pruneTiles(s.tiles, first) }

func (s *sketches) held() []int64 { return slices.Collect(maps.Keys(s.tiles)) }

func (s *sketches) drop(tile int64) { delete(s.tiles, tile) }

func (s *sketches) entries() (list []Entry) {
	for _, tile := range slices.Sorted(maps.Keys(s.tiles)) {
		list = append(list, Entry{Tiles: []int64{tile}, Estimate: s.tiles[tile].count(), Registers: s.tiles[tile].raised()})
	}
	return list
}
