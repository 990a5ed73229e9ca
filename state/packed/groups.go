package packed

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
)

// groups hold a state for each key. Packed, each is the length of the key, the key, the length of
// the state, and the state.
//
// If the series has a cap of max keys, a question is answered with the first max keys of its window, and whether there
// are more. So the first max+1 keys of each tile suffice: no other key is among the first max of a window with the
// tile, and the last of them shows that there are more than max. The others may be dropped at any time without changing
// an answer. Under a greater cap nothing shows that some were, so state is complete then only once it was kept under that cap
// (state.Layout.Noteless).
//
// If the keys would exceed the series' bytes, the last keys of the fullest tiles are dropped. The first dropped key is
// the tile's bound: it and all keys after it are skipped from then on, and answers are marked as capped. Packed, a
// bound is that key, 0 and the tile.
type groups struct {
	series *state.Series
	secret state.Secret
	states map[string]tiled
	bounds map[int64]string // by tile; nil for none
	trimAt int              // the number of keys at which trimming is tried
	first  int64            // the first tile kept when it was last pruned
}

func init() {
	packings[state.Groups] = packing{
		empty: func(s *state.Series, secret state.Secret) State {
			return &groups{series: s, secret: secret, states: map[string]tiled{}, first: math.MinInt64}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, secret state.Secret) ([]byte, int64) {
			return appendGroupMutation(dst, mutation, secret), before
		},
	}
}

// tiled is a state that consists of tiles.
type tiled interface {
	State
	held() []int64 // the tiles with content, each once
	drop(tile int64)
}

// leastTrim is the least number of keys at which trimming is tried.
const leastTrim = 64

func (g *groups) Apply(mutation *state.Mutation) {
	g.at(mutation.Key).Apply(mutation)
	if len(g.states) > max(leastTrim, g.trimAt) {
		g.trim(g.series.Max)
		g.trimAt = 2 * len(g.states)
	}
}

func (g *groups) at(key []byte) tiled {
	s := g.states[string(key)]
	if s == nil {
		s = newTiled(g.series, g.secret)
		g.states[string(key)] = s
	}
	return s
}

func (g *groups) Merge(packed []byte) error {
	r := decoder{packed: packed}
	for r.more() {
		key := r.bytes(r.uvarint())
		body := r.bytes(r.uvarint())
		switch {
		case r.err != nil:
		case len(body) == 0:
			g.lower(firstTile(g.series)+r.varint(), string(key))
		default:
			r.err = g.at(key).Merge(body)
		}
	}
	return r.err
}

// lower makes a key the bound of a tile, unless the tile already has a lower bound.
func (g *groups) lower(tile int64, key string) {
	if g.bounds == nil {
		g.bounds = map[int64]string{}
	}
	if held, ok := g.bounds[tile]; !ok || key < held {
		g.bounds[tile] = key
	}
}

func (g *groups) keys() []string { return slices.Sorted(maps.Keys(g.states)) }

func (g *groups) Append(dst []byte) []byte {
	g.trim(g.series.Max)
	for _, tile := range slices.Sorted(maps.Keys(g.bounds)) {
		dst = append(appendKey(dst, g.bounds[tile]), 0)
		dst = binary.AppendVarint(dst, tile-firstTile(g.series))
	}
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

// lengthen inserts the length of dst[start:] at start.
func lengthen(dst []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(dst)-start))
	return slices.Insert(dst, start, length[:n]...)
}

// appendGroupMutation packs a mutation of one key.
func appendGroupMutation(dst []byte, mutation *state.Mutation, secret state.Secret) []byte {
	dst = appendKey(dst, mutation.Key)
	start := len(dst)
	return lengthen(appendTiledMutation(dst, mutation, firstTile(mutation.Series), secret), start)
}

// trim drops the keys of each tile after the first most+1, and those beyond its bound. If most is 0, it keeps all
// within the bound.
func (g *groups) trim(most int) {
	if most == 0 && len(g.bounds) == 0 {
		return
	}
	counts := map[int64]int{} // of keys, by tile
	for _, key := range g.keys() {
		s := g.states[key]
		tiles := s.held()
		dropped := 0
		for _, tile := range tiles {
			bound, bounded := g.bounds[tile]
			if counts[tile]++; most > 0 && counts[tile] > most+1 || bounded && key >= bound {
				s.drop(tile)
				dropped++
			}
		}
		if dropped == len(tiles) {
			delete(g.states, key)
		}
	}
}

// squeeze squeezes the states that take more than their share; if none can be squeezed, it drops
// half of the keys of the fullest tiles.
func (g *groups) squeeze() (done bool) {
	share := g.series.Bytes / max(1, len(g.states))
	for _, s := range g.states {
		if q, ok := s.(squeezer); ok && len(s.Append(nil)) > share {
			done = q.squeeze() || done
		}
	}
	if done {
		return true
	}
	counts, fullest := map[int64]int{}, 0
	for _, s := range g.states {
		for _, tile := range s.held() {
			counts[tile]++
			fullest = max(fullest, counts[tile])
		}
	}
	if fullest < 2 {
		return false
	}
	clear(counts)
	for _, key := range g.keys() {
		for _, tile := range g.states[key].held() {
			if counts[tile]++; counts[tile] == fullest/2+1 {
				g.lower(tile, key)
			}
		}
	}
	g.trim(g.series.Max)
	return true
}

func (g *groups) Read(r *state.Read) (out state.WindowState) {
	for tile, key := range g.bounds {
		if r.First <= tile && tile <= r.Last && (!out.Capped || key < out.Before) {
			out.Before, out.Capped = key, true
		}
	}
	for _, key := range g.keys() {
		if out.Capped && key >= out.Before {
			break
		}
		if s := g.states[key].Read(r); !s.Empty() {
			out.Groups = append(out.Groups, state.Group{Key: key, WindowState: s})
		}
	}
	return out
}

// Prune visits all keys only if the first tile kept has changed.
func (g *groups) Prune(first int64) (empty bool) {
	if first > g.first {
		g.first = first
		maps.DeleteFunc(g.bounds, func(tile int64, _ string) bool { return tile < first })
		for key, s := range g.states {
			if s.Prune(first) {
				delete(g.states, key)
			}
		}
	}
	return len(g.states) == 0
}

// entries are those of each key; its states are not logs, so they cannot be damaged.
func (g *groups) entries() (list []Entry) {
	for _, key := range g.keys() {
		held, _, _ := Entries(g.series, g.states[key])
		if g.series.Keys != "" {
			key = fmt.Sprintf("%x", key) // no text
		}
		for _, e := range held {
			e.Key = &key
			list = append(list, e)
		}
	}
	return list
}
