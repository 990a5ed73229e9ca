package memory

import "github.com/weir-stream/weir/features/kinds"

// sketches are HyperLogLogs by tile.
type sketches map[int64]*hyperLogLog

func (s sketches) apply(op *kinds.Op) (refusal string) {
	h := s[op.Tile]
	if h == nil {
		h = &hyperLogLog{}
		s[op.Tile] = h
	}
	h.add(op.Member)
	return ""
}

func (s sketches) read(r *kinds.Read) kinds.Slice {
	var union hyperLogLog
	found := false
	for tile, h := range s {
		if r.First <= tile && tile <= r.Last {
			union.merge(h)
			found = true
		}
	}
	if !found {
		return kinds.Slice{}
	}
	return kinds.Slice{Count: union.count()}
}

func (s sketches) prune(first int64) (empty bool) {
	for tile := range s {
		if tile < first {
			delete(s, tile)
		}
	}
	return len(s) == 0
}
