package kinds

// sum is the sum of a numeric field; nulls are passed over.
type sum struct{}

var numeric = []Type{Int, Float, Decimal}

func (sum) Spec() Spec {
	return Spec{
		Name: "sum", Title: "sum of a field", Types: numeric, Exact: true, Neutral: Value{Type: Int},
		Example: "SUM(1d, transaction, amount, user)",
	}
}

func (sum) Measures(Call) []Measure { return []Measure{Sum} }

func (sum) Merge(c Call, s []Slice) Result {
	return Result{Value: add(c, s[0].Cells), Found: len(s[0].Cells) > 0}
}

func (sum) Fold(c Call, _ int64, events []Sample) Result {
	cells := valuesOf(events)
	return Result{Value: add(c, cells), Found: len(cells) > 0}
}

// add adds up cells of the field's type.
func add(c Call, cells []Cell) Value {
	v := Value{Type: c.Type, Scale: c.Scale}
	for _, cell := range cells {
		v.Num += cell.Value.Num
		v.Flt += cell.Value.Flt
	}
	return v
}

// valuesOf gives every value of the events that is not null a cell of its own.
func valuesOf(events []Sample) []Cell {
	cells := make([]Cell, 0, len(events))
	for _, e := range events {
		if !e.Value.IsNull() {
			cells = append(cells, Cell{Tile: e.Time, Value: e.Value})
		}
	}
	return cells
}
