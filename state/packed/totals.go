package packed

import "github.com/weir-stream/weir/state"

// Totals are what the tiles of a series hold together in some windows, added up as it is
// unpacked: no tile is looked for, and none is kept.
type Totals struct {
	tiles   tiles // of which only the series is used
	windows []total
}

// total is that of one window. Its number is of the last tile met there.
type total struct {
	first, last int64 // tiles, both included
	number
	met bool
}

// HasTotals says whether the tiles of a series can be added up in any order: they are
// numbers, and no sum of floats, which is rounded once.
func HasTotals(s *state.Series) bool {
	return s.Layout() == state.Tiles && (s.Measure.Order() != 0 || !floats(s))
}

// Reset begins anew, with a series that has totals and without windows.
func (t *Totals) Reset(s *state.Series) { t.tiles.series, t.windows = s, t.windows[:0] }

// Empty says whether there are no windows.
func (t *Totals) Empty() bool { return len(t.windows) == 0 }

// Over adds a window from one tile to another, both included.
func (t *Totals) Over(first, last int64) {
	t.windows = append(t.windows, total{first: first, last: last})
}

// Merge takes in what a State of the series would. The error is that it is damaged.
func (t *Totals) Merge(packed []byte) error {
	s := t.tiles.series
	r, n := decoder{packed: packed}, number{tile: firstTile(s)}
	for r.more() {
		tile := n.tile + r.varint()
		n = readNumber(&r, s)
		n.tile = tile
		if r.err != nil {
			break
		}
		for i := range t.windows {
			if w := &t.windows[i]; w.first <= tile && tile <= w.last {
				t.add(w, n)
			}
		}
	}
	return r.err
}

func (t *Totals) add(w *total, n number) {
	if w.met {
		n = number{max(w.tile, n.tile), n.num, n.carry}
		held := t.tiles.together(w.number, n)
		n.num, n.carry = held.num, held.carry
	}
	w.number, w.met = n, true
}

// Of is what window i holds together, false where it holds nothing.
func (t *Totals) Of(i int) (all state.Bucket, met bool) {
	w := &t.windows[i]
	if !w.met {
		return all, false
	}
	return state.Bucket{Tile: w.tile, Value: t.tiles.value(w.number)}, true
}
