package packed

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
)

// members are values, each with the ascending tiles in which it was met. Packed, each is its length doubled, the value,
// and its tile; a value in more than one tile has 1 added to that length, and the number of its tiles and their distances
// follow the value.
//
// If a tile has more than series.Values values, those with the least hashes are kept. The least hash that was dropped
// is the tile's bound: values at or above it are skipped from then on. So the kept values depend on the values alone,
// and the bound tells which share of all values the sample is. Packed, a bound precedes the members, like a value of
// eight bytes without tiles, which its tile follows.
type members struct {
	series *state.Series
	tiles  map[string][]int64
	bounds map[int64]uint64 // by tile; nil for none
	runs   []int64          // the tiles of all members, one after another, while none comes between
	least  int64            // no tile is before this one
	trimAt int              // the number of members at which trimming is tried
	sorted []string         // room for Append
}

func init() {
	packings[state.Members] = packing{
		empty: func(s *state.Series, _ Secret) State {
			return &members{series: s, tiles: map[string][]int64{}, least: math.MaxInt64}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ Secret) ([]byte, int64) {
			return appendMember(dst, mutation.Member, []int64{mutation.Tile}, before), before
		},
	}
}

func (m *members) Apply(mutation *state.Mutation) {
	if m.beyond(mutation.Member, mutation.Tile) {
		return
	}
	m.least = min(m.least, mutation.Tile)
	member := string(mutation.Member)
	if met, known := m.tiles[member]; known {
		m.again(member, met, mutation.Tile)
		return
	}
	m.runs = append(m.runs, mutation.Tile)
	m.tiles[member] = slices.Clip(m.runs[len(m.runs)-1:])
	if len(m.tiles) > max(2*m.series.Values, m.trimAt) {
		m.trim(m.series.Values)
		m.trimAt = 2 * len(m.tiles)
	}
}

// again adds tiles to the tiles of a member, and returns all of them.
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
	clear(m.sorted) // they alias what was merged
	m.runs, m.least, m.sorted, m.bounds, m.trimAt = m.runs[:0], math.MaxInt64, m.sorted[:0], nil, 0
}

func (m *members) Merge(packed []byte) error {
	r := decoder{packed: packed}
	for r.more() {
		length, n, tile := r.uvarint(), uint64(1), firstTile(m.series)
		text := r.bytes(length >> 1)
		if length&1 == 1 {
			n = r.uvarint()
		}
		if n == 0 && r.err == nil {
			m.mergeBound(&r, text, tile+r.varint())
			continue
		}
		member := view(text)
		met, known := m.tiles[member]
		from := len(m.runs)
		for before := int64(math.MinInt64); n > 0 && r.err == nil; n-- {
			tile += r.varint()
			m.least = min(m.least, tile)
			switch {
			case r.err != nil:
			case tile <= before:
				r.fail() // they must be ascending
			case m.beyond(text, tile):
			case known:
				met = m.again(member, met, tile)
			default:
				m.runs = append(m.runs, tile)
			}
			before = tile
		}
		if len(m.runs) > from {
			m.tiles[member] = slices.Clip(m.runs[from:])
		}
	}
	return r.err
}

func (m *members) Append(dst []byte) []byte {
	m.trim(m.series.Values)
	for _, tile := range slices.Sorted(maps.Keys(m.bounds)) {
		const length = 8
		dst = append(dst, 2*length+1)
		dst = binary.BigEndian.AppendUint64(dst, m.bounds[tile])
		dst = binary.AppendVarint(append(dst, 0), tile-firstTile(m.series))
	}
	m.sorted = slices.AppendSeq(m.sorted[:0], maps.Keys(m.tiles))
	slices.Sort(m.sorted)
	for _, member := range m.sorted {
		dst = appendMember(dst, member, m.tiles[member], firstTile(m.series))
	}
	return dst
}

// appendMember packs a member; its first tile is written as a distance from before.
func appendMember[T string | []byte](dst []byte, member T, met []int64, before int64) []byte {
	length := 2 * uint64(len(member))
	if len(met) == 1 {
		dst = append(binary.AppendUvarint(dst, length), member...)
	} else {
		dst = append(binary.AppendUvarint(dst, length+1), member...)
		dst = binary.AppendUvarint(dst, uint64(len(met)))
	}
	for _, tile := range met {
		dst = binary.AppendVarint(dst, tile-before)
		before = tile
	}
	return dst
}

func (m *members) Read(r *state.Read) (out state.WindowState) {
	m.trim(m.series.Values)
	out.Members = make([]string, 0, len(m.tiles))
	for member, met := range m.tiles {
		if i, _ := slices.BinarySearch(met, r.First); i < len(met) && met[i] <= r.Last {
			out.Members = append(out.Members, member)
		}
	}
	for tile, bound := range m.bounds {
		if r.First <= tile && tile <= r.Last && (out.Bound == 0 || bound < out.Bound) {
			out.Bound = bound
		}
	}
	return out
}

// Prune visits the members only if some tile may lie before the first one kept.
func (m *members) Prune(first int64) (empty bool) {
	if first > m.least {
		m.least = first
		maps.DeleteFunc(m.bounds, func(tile int64, _ uint64) bool { return tile < first })
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
	delete(m.bounds, tile)
	for member, met := range m.tiles {
		m.tiles[member] = slices.DeleteFunc(met, func(t int64) bool { return t == tile })
		if len(m.tiles[member]) == 0 {
			delete(m.tiles, member)
		}
	}
}
