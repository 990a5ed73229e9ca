package state

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// groups are states of one kind by key. Packed, each is the length of the key,
// itself, the length of the state, and the state.
//
// Where the series has a cap of max keys, a question is answered with those of a
// window that come first, and told whether there are more. So of each tile the
// max+1 keys suffice that come first: a key that is not among them is not among
// the first max of any window with the tile, and the last of them tells that
// there are more than max. To drop the others changes no answer, and may happen
// at any time.
type groups struct {
	series *kinds.Series
	states map[string]tiled
	trimAt int   // the number of keys at which it is looked for what to drop
	first  int64 // the first tile kept when it was last pruned
}

// tiled is a state whose content is that of its tiles.
type tiled interface {
	State
	held() []int64 // the tiles that have content, each once
	drop(tile int64)
}

// leastTrim is the least number of keys at which some are dropped.
const leastTrim = 64

func (g *groups) Apply(op *kinds.Op) {
	g.at(op.Key).Apply(op)
	if len(g.states) > max(leastTrim, g.trimAt) {
		g.trim()
		g.trimAt = 2 * len(g.states)
	}
}

func (g *groups) at(key []byte) tiled {
	s := g.states[string(key)]
	if s == nil {
		s = newTiled(g.series)
		g.states[string(key)] = s
	}
	return s
}

func (g *groups) Merge(packed []byte) error {
	r := reader{packed: packed}
	for r.more() {
		key := r.bytes(r.uvarint())
		body := r.bytes(r.uvarint())
		if r.err == nil {
			r.err = g.at(key).Merge(body)
		}
	}
	return r.err
}

func (g *groups) keys() []string { return slices.Sorted(maps.Keys(g.states)) }

func (g *groups) Append(dst []byte) []byte {
	g.trim()
	for _, key := range g.keys() {
		start := len(appendKey(dst, key))
		dst = lengthen(g.states[key].Append(appendKey(dst, key)), start)
	}
	return dst
}

func appendKey[T string | []byte](dst []byte, key T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(dst, key...)
}

// lengthen puts in front of what begins at start its length.
func lengthen(dst []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(dst)-start))
	return slices.Insert(dst, start, length[:n]...)
}

// appendGroupOp packs an operation on one key.
func appendGroupOp(dst []byte, op *kinds.Op) []byte {
	dst = appendKey(dst, op.Key)
	start := len(dst)
	dst, _ = appendTiledOp(dst, op, firstTile(op.Series))
	return lengthen(dst, start)
}

// trim drops of each tile the keys behind the first max+1.
func (g *groups) trim() {
	if g.series.Max == 0 {
		return
	}
	keys := map[int64]int{} // by tile
	for _, key := range g.keys() {
		s := g.states[key]
		tiles := s.held()
		dropped := 0
		for _, tile := range tiles {
			if keys[tile]++; keys[tile] > g.series.Max+1 {
				s.drop(tile)
				dropped++
			}
		}
		if dropped == len(tiles) {
			delete(g.states, key)
		}
	}
}

func (g *groups) Read(r *kinds.Read) (out kinds.Slice) {
	for _, key := range g.keys() {
		if s := g.states[key].Read(r); !s.Empty() {
			out.Groups = append(out.Groups, kinds.Group{Key: key, Slice: s})
		}
	}
	return out
}

// Prune looks at all keys only when the first tile kept is another one.
func (g *groups) Prune(first int64) (empty bool) {
	if first > g.first {
		g.first = first
		for key, s := range g.states {
			if s.Prune(first) {
				delete(g.states, key)
			}
		}
	}
	return len(g.states) == 0
}
