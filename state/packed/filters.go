package packed

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
)

// filters hold a filter for each tile. Packed, each is the distance from the previous tile, then
// the filter.
type filters struct {
	series *state.Series
	secret state.Secret
	tiles  map[int64]*filter
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
	f.at(mutation.Tile).add(f.secret.Hash(mutation.Member), f.series)
}

func (f *filters) at(tile int64) *filter {
	held := f.tiles[tile]
	if held == nil {
		held = &filter{few: map[uint64]struct{}{}}
		f.tiles[tile] = held
	}
	return held
}

func (f *filters) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(f.series)
	for r.more() {
		if tile += r.varint(); r.err == nil {
			f.at(tile).merge(&r, f.series)
		}
	}
	return r.err
}

func (f *filters) Append(dst []byte) []byte { return appendTiles(dst, f.series, f.tiles) }

// appendFilterMutation packs a filter of one value, given its hash.
func appendFilterMutation(dst []byte, distance int64, hash uint64) []byte {
	dst = binary.AppendVarint(dst, distance)
	dst = binary.AppendUvarint(dst, 1<<1)
	return binary.BigEndian.AppendUint64(dst, hash)
}

func (f *filters) Read(r *state.Read) (out state.WindowState) {
	wanted := union{secret: f.secret}
	for tile, held := range f.tiles {
		if r.First <= tile && tile <= r.Last {
			wanted.filters = append(wanted.filters, held)
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
}

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

func (f *filters) Prune(first int64) (empty bool) { return pruneTiles(f.tiles, first) }

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
