package materialize

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// A cell keeps each answer, also numbers whose bits stand for something else, and those of another type or scale than the
// column's. The whole number zero becomes that of a column of other numbers, and takes no more memory.
func TestCellsKeepAnswers(t *testing.T) {
	integer := func(n int64) Cell { return Cell{Value: value.Value{Type: value.Int, Num: n}} }
	float := func(f float64) Cell { return Cell{Value: value.Value{Type: value.Float, Flt: f}} }
	decimal := func(n int64, scale uint8) Cell {
		return Cell{Value: value.Value{Type: value.Decimal, Num: n, Scale: scale}}
	}
	least := int64(leastNumber)
	wide := value.Add(value.Value{Type: value.Int, Num: math.MaxInt64}, value.Value{Type: value.Int, Num: 1})
	if !wide.Wide() {
		t.Fatal("a sum beyond 64 bits is not wide")
	}
	answers := []Cell{
		{}, integer(0), integer(-1), integer(math.MaxInt64), integer(math.MinInt64), integer(math.MinInt64 + 1), integer(least - 1), integer(least),
		integer(least + 1), float(0), float(math.Copysign(0, -1)), float(-5e-324), float(1.5), float(-1.5), float(math.MaxFloat64), float(-math.MaxFloat64),
		decimal(150, 2), decimal(150, 3), {Value: wide}, {Value: value.Value{Type: value.Bool, Num: 1}}, {Value: value.Value{Type: value.Timestamp, Num: 5}},
		{Value: value.Value{Type: value.String, Str: []byte("text")}}, {Value: value.Value{Type: value.String}},
		{Value: value.Value{Type: value.Location, Flt: 1, Lon: 2}}, {Items: []aggregate.Item{{Value: value.Value{Type: value.Int, Num: 3}}}},
	}
	for _, typ := range []cellType{{value.Int, 0}, {value.Float, 0}, {value.Decimal, 2}, {value.Bool, 0}, {value.Timestamp, 0}, {value.String, 0}, {value.Location, 0}, {}} {
		for _, worker := range []int{0, maxWorkers - 1} {
			long := make([]longCells, maxWorkers)
			row := rowCells{make([]cell, len(answers)), make([]cellType, len(answers)), &long[worker], worker}
			for i := range answers {
				row.types[i] = typ
				row.keep(i, &answers[i].Value, answers[i].Items)
			}
			if kept := row.cells[slices.IndexFunc(answers, func(c Cell) bool { return c.Value.Type == value.Int && c.Value.Num == 0 })]; typ.typ.Numeric() && kept != 0 {
				t.Errorf("a column of %v: zero is long", typ)
			}
			for i, want := range answers {
				if v := &want.Value; typ.typ.Numeric() && v.Type == value.Int && v.Num == 0 && !v.Wide() {
					v.Type, v.Scale = typ.typ, typ.scale
				}
				var got Cell
				row.cells[i].get(&got, typ, long)
				if diff := cmp.Diff(want, got); diff != "" || math.Signbit(got.Value.Flt) != math.Signbit(want.Value.Flt) {
					t.Errorf("a column of %v, worker %d, answer %d (-want +got):\n%s", typ, worker, i, diff)
				}
			}
		}
	}
}
