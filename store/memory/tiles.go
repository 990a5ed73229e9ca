package memory

import (
	"cmp"
	"math"
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// tiles are numbers, by rising tile.
type tiles struct {
	series *kinds.Series
	cells  []kinds.Cell
}

// Reasons to refuse a sum.
const (
	overflows = "increment or decrement would overflow"
	noNumber  = "increment would produce NaN or Infinity"
)

func (t *tiles) find(tile int64) (int, bool) {
	return slices.BinarySearchFunc(t.cells, tile, func(c kinds.Cell, tile int64) int { return cmp.Compare(c.Tile, tile) })
}

func (t *tiles) apply(op *kinds.Op) (refusal string) {
	v := kinds.Value{Type: t.series.Type, Scale: t.series.Scale, Num: op.Num}
	switch m := t.series.Measure; {
	case m == kinds.CountEvents || m == kinds.CountValues:
		v.Type, v.Scale = kinds.Int, 0
	case v.Type == kinds.Float:
		v.Num, v.Flt = 0, math.Float64frombits(uint64(op.Num))
	}
	i, ok := t.find(op.Tile)
	if !ok {
		t.cells = slices.Insert(t.cells, i, kinds.Cell{Tile: op.Tile, Value: v})
		return ""
	}
	held := &t.cells[i].Value
	switch t.series.Measure {
	case kinds.Min:
		if kinds.Compare(v, *held) < 0 {
			*held = v
		}
	case kinds.Max:
		if kinds.Compare(v, *held) > 0 {
			*held = v
		}
	default:
		sum, float := held.Num+v.Num, held.Flt+v.Flt
		if (sum > held.Num) != (v.Num > 0) && v.Num != 0 {
			return overflows
		}
		if math.IsInf(float, 0) {
			return noNumber
		}
		held.Num, held.Flt = sum, float
	}
	return ""
}

func (t *tiles) read(r *kinds.Read) kinds.Slice {
	from, _ := t.find(r.First)
	to, ok := t.find(r.Last)
	if ok {
		to++
	}
	if from >= to {
		return kinds.Slice{}
	}
	return kinds.Slice{Cells: t.cells[from:to:to]}
}

func (t *tiles) prune(first int64) (empty bool) {
	i, _ := t.find(first)
	t.cells = t.cells[i:]
	return len(t.cells) == 0
}
