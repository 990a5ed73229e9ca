package packed

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
)

// dedupSet holds hashes of event IDs, by ascending tile; above max the oldest are dropped.
// Packed, each is the distance from the previous tile, then its 8 bytes.
type dedupSet struct {
	series *state.Series
	secret state.Secret
	list   []dedupEntry
}

func init() {
	packings[state.DedupSet] = packing{
		empty: func(s *state.Series, secret state.Secret) State {
			return &dedupSet{series: s, secret: secret}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) ([]byte, int64) {
			return appendDedupEntry(dst, mutation.Tile-before, int64(secret.Hash(mutation.Member))), mutation.Tile
		},
	}
}

type dedupEntry struct{ tile, hash int64 }

func (a dedupEntry) compare(b dedupEntry) int {
	return cmp.Or(cmp.Compare(a.tile, b.tile), cmp.Compare(a.hash, b.hash))
}

func (d *dedupSet) Apply(mutation *state.Mutation) {
	d.add(dedupEntry{mutation.Tile, d.hashOf(mutation)})
}

// hashOf returns the hash of a mutation's event ID.
func (d *dedupSet) hashOf(mutation *state.Mutation) int64 {
	return int64(d.secret.Hash(mutation.Member))
}

func (d *dedupSet) add(n dedupEntry) {
	i, known := slices.BinarySearchFunc(d.list, n, dedupEntry.compare)
	if known {
		return
	}
	d.list = slices.Insert(d.list, i, n)
	d.list = d.list[max(0, len(d.list)-d.series.Max):]
}

// met returns the first moment of the earliest tile with the mutation's ID; known is false if none has it.
func (d *dedupSet) met(mutation *state.Mutation) (at int64, known bool) {
	hash := d.hashOf(mutation)
	i := slices.IndexFunc(d.list, func(n dedupEntry) bool { return n.hash == hash })
	if i < 0 {
		return 0, false
	}
	return d.list[i].tile * d.series.Tile, true
}

func (d *dedupSet) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, firstTile(d.series)
	for r.more() {
		tile += r.varint()
		if hash := r.bytes(8); r.err == nil {
			d.add(dedupEntry{tile, int64(binary.BigEndian.Uint64(hash))})
		}
	}
	return r.err
}

func (d *dedupSet) Append(dst []byte) []byte {
	before := firstTile(d.series)
	for _, n := range d.list {
		dst = appendDedupEntry(dst, n.tile-before, n.hash)
		before = n.tile
	}
	return dst
}

func appendDedupEntry(dst []byte, distance, hash int64) []byte {
	return binary.BigEndian.AppendUint64(binary.AppendVarint(dst, distance), uint64(hash))
}

// before returns the number of IDs in earlier tiles.
func (d *dedupSet) before(tile int64) int {
	i, _ := slices.BinarySearchFunc(d.list, dedupEntry{tile, math.MinInt64}, dedupEntry.compare)
	return i
}

func (d *dedupSet) Read(r *state.Read) state.WindowState {
	from, to := d.before(r.First), len(d.list)
	if r.Last < math.MaxInt64 {
		to = d.before(r.Last + 1)
	}
	return state.WindowState{Count: int64(max(0, to-from))}
}

func (d *dedupSet) Prune(first int64) (empty bool) {
	d.list = d.list[d.before(first):]
	return len(d.list) == 0
}

func (d *dedupSet) entries() (list []Entry) {
	for _, n := range d.list {
		member := fmt.Sprintf("%016x", uint64(n.hash))
		list = append(list, Entry{Member: &member, Tiles: []int64{n.tile}})
	}
	return list
}
