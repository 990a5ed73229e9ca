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
	runs   []int64  // the tiles of one member behind those of another, as long as none comes between
	first  int64    // the first tile kept when they were last pruned
	sorted []string // room for Append
}

func (m *members) Apply(op *kinds.Op) {
	member := string(op.Member)
	if met, known := m.tiles[member]; known {
		m.again(member, met, op.Tile)
		return
	}
	m.runs = append(m.runs, op.Tile)
	m.tiles[member] = slices.Clip(m.runs[len(m.runs)-1:])
}

// again takes in a member that was met in some tiles, and returns all of them.
func (m *members) again(member string, met []int64, tile int64) []int64 {
	i, ok := slices.BinarySearch(met, tile)
	if !ok {
		met = slices.Insert(met, i, tile)
		m.tiles[member] = met
	}
	return met
}

func (m *members) empty() {
	clear(m.tiles)
	clear(m.sorted) // they are views of what was merged
	m.runs, m.first, m.sorted = m.runs[:0], 0, m.sorted[:0]
}

func (m *members) Merge(packed []byte) error {
	r := reader{packed: packed}
	for r.more() {
		member, tile := view(r.bytes(r.uvarint())), firstTile(m.series)
		met, known := m.tiles[member]
		from := len(m.runs)
		for n := r.uvarint(); n > 0 && r.err == nil; n-- {
			tile += r.varint()
			switch {
			case r.err != nil:
			case known:
				met = m.again(member, met, tile)
			case len(m.runs) > from && tile <= m.runs[len(m.runs)-1]:
				r.fail() // they rise
			default:
				m.runs = append(m.runs, tile)
			}
		}
		if len(m.runs) > from {
			m.tiles[member] = slices.Clip(m.runs[from:])
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
