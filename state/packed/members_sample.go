package packed

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// beyond reports whether a tile no longer keeps values with a member's hash, because its bound is not above it.
func (m *members) beyond(member []byte, tile int64) bool {
	if len(m.bounds) == 0 {
		return false
	}
	bound, ok := m.bounds[tile]
	return ok && m.secret.Hash(member) >= bound
}

// mergeBound merges a tile's bound.
func (m *members) mergeBound(r *decoder, packed []byte, tile int64) {
	if len(packed) != 8 || r.err != nil {
		r.fail()
		return
	}
	m.lower(tile, binary.BigEndian.Uint64(packed))
	if len(m.list) > 0 {
		m.enforce()
	}
}

// lower sets the bound of a tile, unless it has a lower one.
func (m *members) lower(tile int64, bound uint64) {
	m.least = min(m.least, tile)
	if m.bounds == nil {
		m.bounds = map[int64]uint64{}
	}
	if held, ok := m.bounds[tile]; !ok || bound < held {
		m.bounds[tile] = bound
	}
}

// enforce drops the members at or above the bounds of their tiles.
func (m *members) enforce() {
	for at := range m.list {
		held := &m.list[at]
		hash := m.secret.HashString(held.value)
		held.tiles = slices.DeleteFunc(held.tiles, func(tile int64) bool {
			bound, ok := m.bounds[tile]
			return ok && hash >= bound
		})
	}
	m.keep()
}

// fullest returns the greatest number of members in a tile.
func (m *members) fullest() int {
	counts, most := map[int64]int{}, 0
	for _, held := range m.list {
		for _, tile := range held.tiles {
			counts[tile]++
			most = max(most, counts[tile])
		}
	}
	return most
}

// trim keeps at most `most` members of each tile; 0 keeps all.
func (m *members) trim(most int) {
	if most == 0 || len(m.list) <= most || m.fullest() <= most {
		return
	}
	type hashed struct {
		hash  uint64
		tiles []int64
	}
	list := make([]hashed, 0, len(m.list))
	for _, held := range m.list {
		list = append(list, hashed{m.secret.HashString(held.value), held.tiles})
	}
	slices.SortFunc(list, func(a, b hashed) int { return cmp.Compare(a.hash, b.hash) })
	counts := map[int64]int{}
	for _, h := range list {
		for _, tile := range h.tiles {
			if counts[tile]++; counts[tile] == most+1 {
				m.lower(tile, h.hash)
			}
		}
	}
	m.enforce()
}

// leastSample is the least number of members that a tile keeps. Fewer would hardly allow an estimate.
const leastSample = 2

// squeeze halves the members of the fullest tiles.
func (m *members) squeeze() bool {
	fullest := m.fullest()
	most := cmp.Or(m.series.Values, fullest)
	for most >= fullest {
		most /= 2
	}
	if fullest <= leastSample {
		return false
	}
	m.trim(max(most, leastSample))
	return true
}

// entries lists the members, each with its tiles.
func (m *members) entries() (list []Entry) {
	m.sort()
	for _, held := range m.list {
		list = append(list, Entry{Member: &held.value, Tiles: held.tiles})
	}
	return list
}
