package materialize

import (
	"bytes"
	"math"
	"slices"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// cell holds an answer until its row is written: a number of the type and the scale of its column, or the bits of a
// float, as most answers are. It has only 8 bytes, because most rows of a block are in no cache when they are answered.
type cell int64

const (
	// noNumber is the cell of null. It and those after it up to leastNumber tell where in longCells an answer is.
	noNumber    cell = math.MinInt64
	leastNumber      = noNumber + maxWorkers<<longBits
	longBits         = 40
	// maxWorkers is how many workers a cell can tell apart.
	maxWorkers = math.MaxUint8
)

// longCells holds answers that are no numbers of the type of their column, with their own memory.
type longCells []Cell

// cellType is the type of the numbers in a column's cells.
type cellType struct {
	typ   value.Type
	scale uint8
}

// isZero reports whether a value is the neutral one of sums, whatever they are of, in a column of numbers. It is
// written like the zero of the column's type, whose cell is the same.
func (t *cellType) isZero(v *value.Value) bool {
	return v.Type == value.Int && v.Num == 0 && !v.Wide() && (t.typ == value.Decimal || t.typ == value.Float)
}

// rowCells are the cells of a row, for a worker that answers some of them.
type rowCells struct {
	cells  []cell // of the columns that are answers, or about them
	types  []cellType
	long   *longCells
	worker int
}

// keep sets a cell to a copy of a value, or of the items in its place.
func (r *rowCells) keep(at int, v *value.Value, items []aggregate.Item) {
	if t := &r.types[at]; items == nil && (v.Type == t.typ && v.Scale == t.scale || t.isZero(v)) {
		n := leastNumber
		switch {
		case v.Type == value.Float:
			n = cell(math.Float64bits(v.Flt))
		case v.Type != value.String && v.Type != value.Location && !v.Wide():
			n = cell(v.Num)
		}
		if n > leastNumber {
			r.cells[at] = n
			return
		}
	}
	if items == nil && v.IsNull() {
		r.cells[at] = noNumber
		return
	}
	*r.long = append(*r.long, Cell{Value: owned(*v), Items: ownedItems(items)})
	r.cells[at] = noNumber + cell(r.worker)<<longBits + cell(len(*r.long))
}

// get copies the kept answer into to.
func (c cell) get(to *Cell, t cellType, long []longCells) {
	*to = Cell{}
	switch v := &to.Value; {
	case c == noNumber:
	case c <= leastNumber:
		at := c - noNumber - 1
		*to = long[at>>longBits][at&(1<<longBits-1)]
	default:
		if v.Type, v.Scale = t.typ, t.scale; t.typ == value.Float {
			v.Flt = math.Float64frombits(uint64(c))
		} else {
			v.Num = int64(c)
		}
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
