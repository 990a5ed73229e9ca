package memory

import (
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// members are values, each with the tiles in which it was met, rising.
type members struct {
	tiles map[string][]int64
	first int64 // the first tile kept when they were last pruned
}

func (m *members) apply(op *kinds.Op) (refusal string) {
	met := m.tiles[string(op.Member)]
	if i, ok := slices.BinarySearch(met, op.Tile); !ok {
		m.tiles[string(op.Member)] = slices.Insert(met, i, op.Tile)
	}
	return ""
}

func (m *members) read(r *kinds.Read) (out kinds.Slice) {
	for member, met := range m.tiles {
		if i, _ := slices.BinarySearch(met, r.First); i < len(met) && met[i] <= r.Last {
			out.Members = append(out.Members, member)
		}
	}
	return out
}

// prune looks at all members only when the first tile kept is another one.
func (m *members) prune(first int64) (empty bool) {
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
