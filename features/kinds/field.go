package kinds

// everyType are the types of all fields.
var everyType = append(append([]Type{}, anyType...), Location)

// fieldOf lists the values of the events that are not null, in their order.
func fieldOf(events []Sample) []Value {
	var values []Value
	for _, e := range events {
		if !e.Value.IsNull() {
			values = append(values, e.Value)
		}
	}
	return values
}

// integer and float are results of their types.
func integer(n int64) Value { return Value{Type: Int, Num: n} }

func float(f float64) Value { return Value{Type: Float, Flt: f} }
