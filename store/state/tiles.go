package state

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// tiles are numbers, by rising tile. Packed they are pairs of the distance from
// the tile before and the number.
type tiles struct {
	series  *kinds.Series
	numbers []number
}

// number is the content of a tile; floats stand in it by their bits.
type number struct{ tile, num int64 }

func (t *tiles) find(tile int64) (int, bool) {
	return slices.BinarySearchFunc(t.numbers, tile, func(n number, tile int64) int { return cmp.Compare(n.tile, tile) })
}

func (t *tiles) Apply(op *kinds.Op) { t.put(op.Tile, op.Num) }

func (t *tiles) empty() { t.numbers = t.numbers[:0] }

// value is a number as a value of the series.
func (t *tiles) value(num int64) kinds.Value {
	switch {
	case t.series.Measure.Counts():
		return kinds.Value{Type: kinds.Int, Num: num}
	case t.series.Type == kinds.Float:
		return kinds.Value{Type: kinds.Float, Scale: t.series.Scale, Flt: math.Float64frombits(uint64(num))}
	default:
		return kinds.Value{Type: t.series.Type, Scale: t.series.Scale, Num: num}
	}
}

// numberOf is the number of a value.
func numberOf(v kinds.Value) int64 {
	if v.Type == kinds.Float {
		return int64(math.Float64bits(v.Flt))
	}
	return v.Num
}

// put takes in the number of an operation, or that of a tile.
func (t *tiles) put(tile, num int64) {
	if n := len(t.numbers); n == 0 || t.numbers[n-1].tile < tile {
		t.numbers = append(t.numbers, number{tile, num})
		return
	}
	i, ok := t.find(tile)
	if !ok {
		t.numbers = slices.Insert(t.numbers, i, number{tile, num})
		return
	}
	held, v := t.value(t.numbers[i].num), t.value(num)
	switch t.series.Measure {
	case kinds.Min, kinds.Earliest:
		if kinds.Compare(v, held) < 0 {
			t.numbers[i].num = num
		}
	case kinds.Max, kinds.Latest:
		if kinds.Compare(v, held) > 0 {
			t.numbers[i].num = num
		}
	default:
		t.numbers[i].num = numberOf(kinds.Add(held, v))
	}
}

func (t *tiles) Merge(packed []byte) error {
	r, tile := reader{packed: packed}, firstTile(t.series)
	if t.numbers == nil {
		const usual = 3 // bytes of a tile
		t.numbers = make([]number, 0, len(packed)/usual+1)
	}
	for r.more() {
		tile += r.varint()
		num := readNumber(&r, t.series)
		if r.err == nil {
			t.put(tile, num)
		}
	}
	return r.err
}

func (t *tiles) Append(dst []byte) []byte {
	before := firstTile(t.series)
	for _, n := range t.numbers {
		dst = binary.AppendVarint(dst, n.tile-before)
		before = n.tile
		dst = appendNumber(dst, t.series, n.num)
	}
	return dst
}

// floats says whether the numbers of a series are the bits of floats.
func floats(s *kinds.Series) bool {
	return s.Type == kinds.Float && !s.Measure.Counts()
}

func appendNumber(dst []byte, s *kinds.Series, num int64) []byte {
	if floats(s) {
		return binary.BigEndian.AppendUint64(dst, uint64(num))
	}
	return binary.AppendVarint(dst, num)
}

func readNumber(r *reader, s *kinds.Series) int64 {
	if !floats(s) {
		return r.varint()
	}
	if b := r.bytes(8); r.err == nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (t *tiles) Read(r *kinds.Read) kinds.Slice {
	from, _ := t.find(r.First)
	to, ok := t.find(r.Last)
	if ok {
		to++
	}
	if from >= to {
		return kinds.Slice{}
	}
	cells, alike, isFloat := make([]kinds.Cell, to-from), t.value(0), floats(t.series)
	for i, n := range t.numbers[from:to] {
		// Field by field: a value is nine words, of which a number needs three.
		c := &cells[i]
		c.Tile, c.Value.Type, c.Value.Scale = n.tile, alike.Type, alike.Scale
		if isFloat {
			c.Value.Flt = math.Float64frombits(uint64(n.num))
		} else {
			c.Value.Num = n.num
		}
	}
	return kinds.Slice{Cells: cells}
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
