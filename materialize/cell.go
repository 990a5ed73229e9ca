package materialize

import (
	"bytes"
	"math"
	"slices"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// cell holds an answer until its row is written. It holds numbers, which most answers are, itself.
type cell struct {
	bits  uint64 // of the number; of other values the index in longCells
	typ   value.Type
	scale uint8
	from  uint8 // 0 for a number; else the worker whose longCells have it, from 1
}

// mostWorkers is how many workers a cell can tell apart.
const mostWorkers = math.MaxUint8

// longCells holds answers that are no numbers, with their own memory.
type longCells []Cell

// rowCells are the cells of a row, for a worker that answers some of them.
type rowCells struct {
	cells  []cell // of the columns that are answers, or about them
	long   *longCells
	worker uint8
}

// keep sets a cell to a copy of a value, or of the items in its place.
func (r *rowCells) keep(at int, v *value.Value, items []aggregate.Item) {
	to := &r.cells[at]
	switch {
	case items != nil || v.Type == value.String || v.Type == value.Location || v.Wide():
		*to = cell{bits: uint64(len(*r.long)), from: r.worker + 1}
		*r.long = append(*r.long, Cell{Value: owned(*v), Items: ownedItems(items)})
	case v.Type == value.Float:
		*to = cell{typ: v.Type, bits: math.Float64bits(v.Flt)}
	default:
		*to = cell{typ: v.Type, scale: v.Scale, bits: uint64(v.Num)}
	}
}

// get copies the kept answer into to.
func (c *cell) get(to *Cell, long []longCells) {
	if c.from > 0 {
		*to = long[c.from-1][c.bits]
		return
	}
	*to = Cell{}
	v := &to.Value
	if v.Type, v.Scale = c.typ, c.scale; c.typ == value.Float {
		v.Flt = math.Float64frombits(c.bits)
	} else {
		v.Num = int64(c.bits)
	}
}

// owned returns a value with its own copy of the text.
func owned(v value.Value) value.Value {
	v.Str = bytes.Clone(v.Str)
	return v
}

func ownedItems(items []aggregate.Item) []aggregate.Item {
	items = slices.Clone(items)
	for i := range items {
		of := &items[i]
		of.Value, of.Category, of.From, of.To = owned(of.Value), owned(of.Category), owned(of.From), owned(of.To)
	}
	return items
}
