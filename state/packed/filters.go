package packed

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
)

// filters hold a filter for each tile. Packed, each is the distance from the previous tile, then
// the filter.
//
// Half of the bytes of the series are shared out evenly: no other tile makes a filter full within its share, or within
// leastFilter. Beyond its share a filter takes at most half of what the other filters have left of the other half of the
// bytes. So values of one time do not take the room of all others, however narrow the tiles are, and together the
// filters exceed the bytes of their series only if they all are tiny.
type filters struct {
	series *state.Series
	secret state.Secret
	tiles  map[int64]*filter
	taken  int // bytes that filters have beyond their shares
}

func init() {
	packings[state.Filters] = packing{
		empty: func(s *state.Series, secret state.Secret) State {
			return &filters{series: s, secret: secret, tiles: map[int64]*filter{}}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) ([]byte, int64) {
			return appendFilterMutation(dst, mutation.Tile-before, secret.Hash(mutation.Member)), mutation.Tile
		},
	}
}

func (f *filters) Apply(mutation *state.Mutation) {
	hash := f.secret.Hash(mutation.Member)
	f.change(mutation.Tile, func(held *filter, most int) { held.add(hash, f.series, most) })
}

// change changes the filter of a tile, which may have at most that many bytes afterwards.
func (f *filters) change(tile int64, change func(held *filter, most int)) {
	held := f.at(tile)
	if f.series.Bytes == 0 {
		change(held, math.MaxInt)
		return
	}
	f.taken -= f.beyondShare(held)
	left := max(0, f.series.Bytes/2-f.taken)
	change(held, max(leastFilter, f.share()+left/min(2, f.tilesKept())))
	f.taken += f.beyondShare(held)
}

func (f *filters) tilesKept() int { return max(1, f.series.Tiles) }

// share returns the bytes that each filter may have, whatever the others have.
func (f *filters) share() int { return f.series.Bytes / (2 * f.tilesKept()) }

func (f *filters) beyondShare(held *filter) int { return max(0, held.size()-f.share()) }

// retake computes taken again.
func (f *filters) retake() {
	f.taken = 0
	for _, held := range f.tiles {
		f.taken += f.beyondShare(held)
	}
}

func (f *filters) at(tile int64) *filter {
	held := f.tiles[tile]
	if held == nil {
		held = &filter{few: map[uint64]struct{}{}}
		f.tiles[tile] = held
		f.taken += f.beyondShare(held)
	}
	return held
}

func (f *filters) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(f.series)
	for r.more() {
		if tile += r.varint(); r.err == nil {
			f.change(tile, func(held *filter, most int) { held.merge(&r, f.series, most) })
		}
	}
	return r.err
}

func (f *filters) Append(dst []byte) []byte { return appendTiles(dst, f.series, f.tiles) }

// appendFilterMutation packs a filter of one value, given its hash.
func appendFilterMutation(dst []byte, distance int64, hash uint64) []byte {
	dst = binary.AppendVarint(dst, distance)
	dst = binary.AppendUvarint(dst, 1<<headerBits)
	return binary.BigEndian.AppendUint64(dst, hash)
}

func (f *filters) Read(r *state.Read) (out state.WindowState) {
	wanted := union{secret: f.secret}
	for tile, held := range f.tiles {
		if r.First <= tile && tile <= r.Last {
			wanted.filters = append(wanted.filters, held)
			wanted.full = wanted.full || held.full
		}
	}
	if wanted.filters != nil {
		out.Filter, out.AtEnd = wanted, f.tiles[r.Last] != nil
	}
	return out
}

// union is the union of the filters of several tiles.
type union struct {
	secret  state.Secret
	filters []*filter
	full    bool
}

// Full reports whether values of the window may be missing, see state.Filter.
func (u union) Full() bool { return u.full }

// Has reports whether a value was added, see state.Filter.
func (u union) Has(text []byte) bool {
	hash := u.secret.Hash(text)
	return slices.ContainsFunc(u.filters, func(f *filter) bool { return f.has(hash) })
}

// FalsePositiveRate returns at most the sum of the filters' rates, even if the filters depend on each other.
func (u union) FalsePositiveRate() float64 {
	// Sort the rates, so that equal states add up to equal sums.
	var rates []float64
	for _, f := range u.filters {
		for i := range f.layers {
			rates = append(rates, f.layers[i].rate(0))
		}
	}
	slices.Sort(rates)
	sum := 0.0
	for _, rate := range rates {
		sum += rate
	}
	return min(1, sum)
}

func (f *filters) Prune(first int64) (empty bool) {
	before := len(f.tiles)
	empty = pruneTiles(f.tiles, first)
	if len(f.tiles) < before {
		f.retake()
	}
	return empty
}

// squeeze drops the values that were added last of the longest filters, which are full from then on, and reports whether
// there are any. What is still found is found at the same rate.
func (f *filters) squeeze() bool {
	longest := 0
	for _, held := range f.tiles {
		longest = max(longest, held.size())
	}
	if longest <= leastFilter {
		return false
	}
	for _, held := range f.tiles {
		if size := held.size(); size > max(leastFilter, longest/2) {
			held.shorten()
		}
	}
	f.retake()
	return true
}

func (f *filters) entries() (list []Entry) {
	for _, tile := range slices.Sorted(maps.Keys(f.tiles)) {
		held, bits := f.tiles[tile], 0
		for _, layer := range held.layers {
			bits += layer.ones
		}
		list = append(list, Entry{Tiles: []int64{tile}, Hashes: len(held.few), Bits: bits})
	}
	return list
}
