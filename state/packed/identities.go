package packed

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
)

// identities are hashes of the events' own identities, by rising tile; of more
// than max the oldest are put out. Packed, each is the distance from the tile
// before, and its 8 bytes.
type identities struct {
	series *state.Series
	secret Secret
	list   []identity
}

type identity struct{ tile, hash int64 }

func (a identity) compare(b identity) int {
	return cmp.Or(cmp.Compare(a.tile, b.tile), cmp.Compare(a.hash, b.hash))
}

func (d *identities) Apply(op *state.Mutation) { d.add(identity{op.Tile, d.hashOf(op)}) }

// hashOf is the hash of the identity that an operation has.
func (d *identities) hashOf(op *state.Mutation) int64 { return int64(d.secret.hash(op.Member)) }

func (d *identities) add(n identity) {
	i, known := slices.BinarySearchFunc(d.list, n, identity.compare)
	if known {
		return
	}
	d.list = slices.Insert(d.list, i, n)
	d.list = d.list[max(0, len(d.list)-d.series.Max):]
}

// has says whether an event with the identity that an operation has was met, whenever
// that was.
func (d *identities) has(op *state.Mutation) bool {
	hash := d.hashOf(op)
	return slices.ContainsFunc(d.list, func(n identity) bool { return n.hash == hash })
}

func (d *identities) Merge(packed []byte) error {
	r, tile := reader{packed: packed}, firstTile(d.series)
	for r.more() {
		tile += r.varint()
		if hash := r.bytes(8); r.err == nil {
			d.add(identity{tile, int64(binary.BigEndian.Uint64(hash))})
		}
	}
	return r.err
}

func (d *identities) Append(dst []byte) []byte {
	before := firstTile(d.series)
	for _, n := range d.list {
		dst = appendIdentity(dst, n.tile-before, n.hash)
		before = n.tile
	}
	return dst
}

func appendIdentity(dst []byte, distance, hash int64) []byte {
	return binary.BigEndian.AppendUint64(binary.AppendVarint(dst, distance), uint64(hash))
}

// before is the number of identities of earlier tiles.
func (d *identities) before(tile int64) int {
	i, _ := slices.BinarySearchFunc(d.list, identity{tile, math.MinInt64}, identity.compare)
	return i
}

func (d *identities) Read(r *state.Read) state.WindowState {
	from, to := d.before(r.First), len(d.list)
	if r.Last < math.MaxInt64 {
		to = d.before(r.Last + 1)
	}
	return state.WindowState{Count: int64(max(0, to-from))}
}

func (d *identities) Prune(first int64) (empty bool) {
	d.list = d.list[d.before(first):]
	return len(d.list) == 0
}
