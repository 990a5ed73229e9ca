package state

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// members are values, each with the tiles in which it was met, rising. Packed,
// each is its length, itself, the number of its tiles and their distances.
type members struct {
	series *kinds.Series
	tiles  map[string][]int64
	ones   []int64  // in which the tiles of each member begin: most have only one
	first  int64    // the first tile kept when they were last pruned
	sorted []string // room for Append
}

func (m *members) Apply(op *kinds.Op) {
	if met, known := m.tiles[string(op.Member)]; known {
		m.again(op.Member, met, op.Tile)
	} else {
		m.meet(string(op.Member), op.Tile)
	}
}

// meet takes in a member that was not met before.
func (m *members) meet(member string, tile int64) {
	m.ones = append(m.ones, tile)
	n := len(m.ones)
	m.tiles[member] = m.ones[n-1 : n : n]
}

// again takes in a member that was met in some tiles.
func (m *members) again(member []byte, met []int64, tile int64) {
	if i, ok := slices.BinarySearch(met, tile); !ok {
		m.tiles[string(member)] = slices.Insert(met, i, tile)
	}
}

func (m *members) empty() {
	clear(m.tiles)
	clear(m.sorted) // they are views of what was merged
	m.ones, m.first, m.sorted = m.ones[:0], 0, m.sorted[:0]
}

func (m *members) Merge(packed []byte) error {
	r := reader{packed: packed}
	for r.more() {
		member, tile := r.bytes(r.uvarint()), firstTile(m.series)
		for n := r.uvarint(); n > 0 && r.err == nil; n-- {
			if tile += r.varint(); r.err != nil {
				break
			}
			if met, known := m.tiles[string(member)]; known {
				m.again(member, met, tile)
			} else {
				m.meet(view(member), tile)
			}
		}
	}
	return r.err
}

func (m *members) Append(dst []byte) []byte {
	m.sorted = slices.AppendSeq(m.sorted[:0], maps.Keys(m.tiles))
	slices.Sort(m.sorted)
	for _, member := range m.sorted {
		dst = appendMember(dst, member, m.tiles[member], firstTile(m.series))
	}
	return dst
}

// appendMember packs a member; its first tile is a distance from before.
func appendMember[T string | []byte](dst []byte, member T, met []int64, before int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(member)))
	dst = append(dst, member...)
	dst = binary.AppendUvarint(dst, uint64(len(met)))
	for _, tile := range met {
		dst = binary.AppendVarint(dst, tile-before)
		before = tile
	}
	return dst
}

func (m *members) Read(r *kinds.Read) (out kinds.Slice) {
	out.Members = make([]string, 0, len(m.tiles))
	for member, met := range m.tiles {
		if i, _ := slices.BinarySearch(met, r.First); i < len(met) && met[i] <= r.Last {
			out.Members = append(out.Members, member)
		}
	}
	return out
}

// Prune looks at all members only when the first tile kept is another one.
func (m *members) Prune(first int64) (empty bool) {
	if first > m.first {
		m.first = first
		for member, met := range m.tiles {
			i, _ := slices.BinarySearch(met, first)
			if i == len(met) {
				delete(m.tiles, member)
			} else {
				m.tiles[member] = met[i:]
			}
		}
	}
	return len(m.tiles) == 0
}

func (m *members) held() []int64 {
	var tiles []int64
	for _, met := range m.tiles {
		tiles = append(tiles, met...)
	}
	slices.Sort(tiles)
	return slices.Compact(tiles)
}

func (m *members) drop(tile int64) {
	for member, met := range m.tiles {
		m.tiles[member] = slices.DeleteFunc(met, func(t int64) bool { return t == tile })
		if len(m.tiles[member]) == 0 {
			delete(m.tiles, member)
		}
	}
}
