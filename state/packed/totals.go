package packed

import "github.com/weir-stream/weir/state"

// totals are the totals of a series' tiles in some windows, added up while unpacking: tiles are
// neither searched nor stored.
type totals struct {
	tiles   tiles // only its series is used
	windows []total
}

// total is the total of one window. The tile of its number is the last one met there.
type total struct {
	first, last int64 // tiles, inclusive
	number
	met bool
}

// HasTotals says whether the tiles of a series can be added in any order: they are numbers, but not
// a sum of floats, which is rounded once.
func HasTotals(s *state.Series) bool {
	return s.Layout() == state.Tiles && (s.Measure.Order() != 0 || !floats(s))
}

// Reset starts over, with a series that has totals and without windows.
func (t *totals) Reset(s *state.Series) { t.tiles.series, t.windows = s, t.windows[:0] }

// Empty says whether there are no windows.
func (t *totals) Empty() bool { return len(t.windows) == 0 }

// over adds a window from one tile to another, inclusive.
func (t *totals) over(first, last int64) {
	t.windows = append(t.windows, total{first: first, last: last})
}

// Merge adds packed state of the series. It fails if that is damaged.
func (t *totals) Merge(packed []byte) error {
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

func (t *totals) add(w *total, n number) {
	if w.met {
		n = number{max(w.tile, n.tile), n.num, n.carry}
		held := t.tiles.together(w.number, n)
		n.num, n.carry = held.num, held.carry
	}
	w.number, w.met = n, true
}

// Of is the total of window i, false if the window holds nothing.
func (t *totals) Of(i int) (all state.Bucket, met bool) {
	w := &t.windows[i]
	if !w.met {
		return all, false
	}
	return state.Bucket{Tile: w.tile, Value: t.tiles.value(w.number)}, true
}
