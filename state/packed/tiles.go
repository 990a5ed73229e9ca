package packed

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// tiles are numbers by ascending tile. Packed, they are pairs of the distance from the previous tile and the number. In
// a series that counts, the number is mostly 1: the distance is doubled, and 1 is added to it if another number follows.
type tiles struct {
	series  *state.Series
	origin  int64 // its first tile, see members
	numbers []number
}

func init() {
	packings[state.Tiles] = packing{
		empty: func(s *state.Series, _ state.Secret) State {
			return &tiles{series: s, origin: firstTile(s)}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ state.Secret) ([]byte, int64) {
			return appendTile(dst, mutation.Series, mutation.Tile-before, number{num: mutation.Num}), mutation.Tile
		},
	}
}

// number is the number of a tile; floats are stored as their bits. A sum may have 128 bits, see value.Value.
type number struct{ tile, num, carry int64 }

func (t *tiles) find(tile int64) (int, bool) {
	return slices.BinarySearchFunc(t.numbers, tile, func(n number, tile int64) int { return cmp.Compare(n.tile, tile) })
}

func (t *tiles) Apply(mutation *state.Mutation) {
	t.put(number{tile: mutation.Tile, num: mutation.Num})
}

func (t *tiles) empty() { t.numbers = t.numbers[:0] }

// value returns a number as a value of the series.
func (t *tiles) value(n number) value.Value {
	switch {
	case t.series.Measure.Counts():
		return value.Value{Type: value.Int, Num: n.num}
	case t.series.Type == value.Float:
		return value.Value{Type: value.Float, Scale: t.series.Scale, Flt: math.Float64frombits(uint64(n.num))}
	default:
		return value.Value{Type: t.series.Type, Scale: t.series.Scale, Num: n.num, Carry: n.carry}
	}
}

// put merges a number into its tile.
func (t *tiles) put(n number) {
	if last := len(t.numbers) - 1; last < 0 || t.numbers[last].tile < n.tile {
		t.numbers = append(t.numbers, n)
		return
	}
	i, ok := t.find(n.tile)
	if !ok {
		t.numbers = slices.Insert(t.numbers, i, n)
		return
	}
	t.numbers[i] = t.together(t.numbers[i], n)
}

// together combines two numbers of the same tile.
func (t *tiles) together(a, b number) number {
	order, isFloat := t.series.Measure.Order(), floats(t.series)
	if sum := a.num + b.num; order == 0 && !isFloat && a.carry|b.carry == 0 && (sum > a.num) == (b.num > 0) {
		a.num = sum
		return a
	}
	v, w := t.value(a), t.value(b)
	if order != 0 {
		if value.Compare(w, v) == order {
			return b
		}
		return a
	}
	sum := value.Add(v, w)
	if isFloat {
		sum.Num = int64(math.Float64bits(sum.Flt))
	}
	a.num, a.carry = sum.Num, sum.Carry
	return a
}

func (t *tiles) Merge(packed []byte) error {
	r, tile := decoder{packed: packed}, t.origin
	if t.numbers == nil {
		const usual = 3 // bytes of a tile
		t.numbers = make([]number, 0, len(packed)/usual+1)
	}
	for r.more() {
		n := readTile(&r, t.series, tile)
		if tile = n.tile; r.err == nil {
			t.put(n)
		}
	}
	return r.err
}

func (t *tiles) Append(dst []byte) []byte {
	before := t.origin
	for _, n := range t.numbers {
		dst = appendTile(dst, t.series, n.tile-before, n)
		before = n.tile
	}
	return dst
}

// floats reports whether the numbers of a series are the bits of floats.
func floats(s *state.Series) bool {
	return s.Type == value.Float && !s.Measure.Counts()
}

// appendTile appends a number and the distance of its tile from the one before.
func appendTile(dst []byte, s *state.Series, distance int64, n number) []byte {
	if s.Measure.Counts() {
		if n.num == 1 {
			return binary.AppendVarint(dst, 2*distance)
		}
		distance = 2*distance + 1
	}
	return appendNumber(binary.AppendVarint(dst, distance), s, n)
}

// readTile reads a number whose tile is packed as the distance from the one before.
func readTile(r *decoder, s *state.Series, before int64) (n number) {
	distance, counts := r.varint(), s.Measure.Counts()
	if counts && distance&1 == 0 {
		return number{tile: before + distance>>1, num: 1}
	}
	n = readNumber(r, s)
	if counts {
		distance >>= 1
	}
	n.tile = before + distance
	return n
}

// appendNumber appends a number without its tile: a float's bits, or a zigzag varint, of up to 128
// bits for a sum.
func appendNumber(dst []byte, s *state.Series, n number) []byte {
	switch {
	case floats(s):
		return binary.BigEndian.AppendUint64(dst, uint64(n.num))
	case n.carry != 0:
		return appendWideVarint(dst, n.num, n.carry)
	default:
		return binary.AppendVarint(dst, n.num)
	}
}

func readNumber(r *decoder, s *state.Series) (n number) {
	switch {
	case s.Measure.Wide() && !floats(s):
		n.num, n.carry = r.wideVarint()
	case !floats(s):
		n.num = r.varint()
	default:
		if b := r.bytes(8); r.err == nil {
			n.num = int64(binary.BigEndian.Uint64(b))
		}
	}
	return n
}

func (t *tiles) Read(r *state.Read) state.WindowState {
	from, _ := t.find(r.First)
	to, ok := t.find(r.Last)
	if ok {
		to++
	}
	if from >= to {
		return state.WindowState{}
	}
	buckets, alike, isFloat := make([]state.Bucket, to-from), t.value(number{}), floats(t.series)
	for i, n := range t.numbers[from:to] {
		// Field by field: a value has eight words, and a number needs four of them.
		b := &buckets[i]
		b.Tile, b.Value.Type, b.Value.Scale = n.tile, alike.Type, alike.Scale
		if isFloat {
			b.Value.Flt = math.Float64frombits(uint64(n.num))
		} else {
			b.Value.Num, b.Value.Carry = n.num, n.carry
		}
	}
	return state.WindowState{Buckets: buckets}
}

func (t *tiles) Prune(first int64) (empty bool) {
	i, _ := t.find(first)
	t.numbers = slices.Delete(t.numbers, 0, i)
	return len(t.numbers) == 0
}

func (t *tiles) held() []int64 {
	tiles := make([]int64, len(t.numbers))
	for i, n := range t.numbers {
		tiles[i] = n.tile
	}
	return tiles
}

func (t *tiles) drop(tile int64) {
	if i, ok := t.find(tile); ok {
		t.numbers = slices.Delete(t.numbers, i, i+1)
	}
}

// totals are the totals of a series' tiles in some windows. They are added up while unpacking, so tiles are neither
// searched nor stored.
type totals struct {
	tiles   tiles // its numbers are not used
	windows []total
}

// total is the total of one window. The tile of its number is the last tile with content.
type total struct {
	first, last int64 // tiles, inclusive
	number
	met bool
}

// HasTotals reports whether the tiles of a series can be added in any order: they are numbers, but not a sum of floats,
// which is rounded only once.
func HasTotals(s *state.Series) bool {
	return s.Layout() == state.Tiles && (s.Measure.Order() != 0 || !floats(s))
}

// Reset starts over, with a series that has totals and without windows.
func (t *totals) Reset(s *state.Series) {
	if t.windows = t.windows[:0]; t.tiles.series != s {
		t.tiles.series, t.tiles.origin = s, firstTile(s)
	}
}

// Empty reports whether there are no windows.
func (t *totals) Empty() bool { return len(t.windows) == 0 }

// over adds a window from one tile to another, inclusive.
func (t *totals) over(first, last int64) {
	t.windows = append(t.windows, total{first: first, last: last})
}

// Merge adds packed state of the series. It fails if that is damaged.
func (t *totals) Merge(packed []byte) error {
	s := t.tiles.series
	r, n := decoder{packed: packed}, number{tile: t.tiles.origin}
	for r.more() {
		n = readTile(&r, s, n.tile)
		if r.err != nil {
			break
		}
		for i := range t.windows {
			if w := &t.windows[i]; w.first <= n.tile && n.tile <= w.last {
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

// Of returns the total of window i; met is false if the window is empty.
func (t *totals) Of(i int) (all state.Bucket, met bool) {
	w := &t.windows[i]
	if !w.met {
		return all, false
	}
	return state.Bucket{Tile: w.tile, Value: t.tiles.value(w.number)}, true
}
