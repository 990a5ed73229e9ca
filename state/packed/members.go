package packed

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"

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
	series  *state.Series
	secret  state.Secret
	origin  int64 // its first tile; a division each time is more than the rest of unpacking a member
	list    []member
	places  map[string]int   // in list, if indexed
	indexed bool             // not while the list is short: then it is searched
	bounds  map[int64]uint64 // by tile; nil for none
	runs    []int64          // the tiles of all members, one after another, while none comes between
	least   int64            // no tile is before this one
	trimAt  int              // the number of members at which trimming is tried
}

// member is a value with its tiles, ascending.
type member struct {
	value string
	tiles []int64
}

func init() {
	packings[state.Members] = packing{
		empty: func(s *state.Series, secret state.Secret) State {
			return &members{series: s, secret: secret, origin: firstTile(s), least: math.MaxInt64}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ state.Secret) ([]byte, int64) {
			return appendMember(dst, mutation.Member, []int64{mutation.Tile}, before), before
		},
	}
}

// find returns the place of a value in the list, -1 if it is not there.
func (m *members) find(value string) int {
	const few = 16 // searching these is faster than hashing
	if !m.indexed && len(m.list) <= few {
		return slices.IndexFunc(m.list, func(held member) bool { return held.value == value })
	}
	if !m.indexed {
		if m.places == nil {
			m.places = make(map[string]int, 2*len(m.list))
		}
		for at := range m.list {
			m.places[m.list[at].value] = at
		}
		m.indexed = true
	}
	if at, ok := m.places[value]; ok {
		return at
	}
	return -1
}

// add adds a value that is not in the list.
func (m *members) add(value string, tiles []int64) {
	if m.indexed {
		m.places[value] = len(m.list)
	}
	m.list = append(m.list, member{value, tiles})
}

// moved drops the index, because members are no longer in their places.
func (m *members) moved() {
	if m.indexed {
		clear(m.places)
		m.indexed = false
	}
}

// keep drops the members without tiles.
func (m *members) keep() {
	before := len(m.list)
	if m.list = slices.DeleteFunc(m.list, func(held member) bool { return len(held.tiles) == 0 }); len(m.list) < before {
		m.moved()
	}
}

func (m *members) Apply(mutation *state.Mutation) {
	if m.beyond(mutation.Member, mutation.Tile) {
		return
	}
	m.least = min(m.least, mutation.Tile)
	if at := m.find(view(mutation.Member)); at >= 0 {
		m.again(at, mutation.Tile)
		return
	}
	m.runs = append(m.runs, mutation.Tile)
	m.add(string(mutation.Member), slices.Clip(m.runs[len(m.runs)-1:]))
	if len(m.list) > max(2*m.series.Values, m.trimAt) {
		m.trim(m.series.Values)
		m.trimAt = 2 * len(m.list)
	}
}

// again adds a tile to those of a member.
func (m *members) again(at int, tile int64) {
	held := &m.list[at]
	n := len(held.tiles)
	if tile > held.tiles[n-1] && len(m.runs) > 0 && &held.tiles[n-1] == &m.runs[len(m.runs)-1] { // its run is the last
		m.runs = append(m.runs, tile)
		held.tiles = slices.Clip(m.runs[len(m.runs)-n-1:])
		return
	}
	if i, ok := slices.BinarySearch(held.tiles, tile); !ok {
		held.tiles = slices.Insert(held.tiles, i, tile)
	}
}

func (m *members) empty() {
	m.moved()
	clear(m.list) // they alias what was merged
	m.list, m.runs, m.least, m.bounds, m.trimAt = m.list[:0], m.runs[:0], math.MaxInt64, nil, 0
}

func (m *members) Merge(packed []byte) error {
	r := decoder{packed: packed}
	for r.more() {
		length, n, tile := r.uvarint(), uint64(1), m.origin
		text := r.bytes(length >> 1)
		if length&1 == 1 {
			n = r.uvarint()
		}
		if n == 0 && r.err == nil {
			m.mergeBound(&r, text, tile+r.varint())
			continue
		}
		at, from := m.find(view(text)), len(m.runs)
		for before := int64(math.MinInt64); n > 0 && r.err == nil; n-- {
			tile += r.varint()
			m.least = min(m.least, tile)
			switch {
			case r.err != nil:
			case tile <= before:
				r.fail() // they must be ascending
			case m.beyond(text, tile):
			case at >= 0:
				m.again(at, tile)
			default:
				m.runs = append(m.runs, tile)
			}
			before = tile
		}
		if at < 0 && len(m.runs) > from {
			m.add(view(text), slices.Clip(m.runs[from:]))
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
		dst = binary.AppendVarint(append(dst, 0), tile-m.origin)
	}
	m.sort()
	for _, held := range m.list {
		dst = appendMember(dst, held.value, held.tiles, m.origin)
	}
	return dst
}

func (m *members) sort() {
	slices.SortFunc(m.list, func(a, b member) int { return strings.Compare(a.value, b.value) })
	m.moved()
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
	out.Secret = m.secret
	out.Members = make([]string, 0, len(m.list))
	for _, held := range m.list {
		if i, _ := slices.BinarySearch(held.tiles, r.First); i < len(held.tiles) && held.tiles[i] <= r.Last {
			out.Members = append(out.Members, held.value)
			if !out.AtEnd {
				_, out.AtEnd = slices.BinarySearch(held.tiles[i:], r.Last)
			}
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
		for at := range m.list {
			held := &m.list[at]
			i, _ := slices.BinarySearch(held.tiles, first)
			held.tiles = held.tiles[i:]
		}
		m.keep()
	}
	return len(m.list) == 0
}

func (m *members) held() []int64 {
	var tiles []int64
	for _, held := range m.list {
		tiles = append(tiles, held.tiles...)
	}
	slices.Sort(tiles)
	return slices.Compact(tiles)
}

func (m *members) drop(tile int64) {
	delete(m.bounds, tile)
	for at := range m.list {
		held := &m.list[at]
		held.tiles = slices.DeleteFunc(held.tiles, func(t int64) bool { return t == tile })
	}
	m.keep()
}
