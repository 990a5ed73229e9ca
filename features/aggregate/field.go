package aggregate

import (
	"math"
	"slices"

	"github.com/weir-stream/weir/value"
)

// allTypes are the types of all fields.
var allTypes = slices.Concat(distinctTypes, []value.Type{value.Location})

// fieldOf lists the non-null values of the events, in order.
func fieldOf(events []Sample) []value.Value {
	var values []value.Value
	for _, e := range events {
		if !e.Value.IsNull() {
			values = append(values, e.Value)
		}
	}
	return values
}

// hasValues reports whether as many of the events have a value.
func hasValues(events []Sample, n int) bool {
	for i := 0; i < len(events) && n > 0; i++ {
		if !events[i].Value.IsNull() {
			n--
		}
	}
	return n <= 0
}

func integer(n int64) value.Value { return value.Value{Type: value.Int, Num: n} }

// float returns a result, null if a calculation left the range of floats.
func float(f float64) value.Value {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return value.Value{}
	}
	return value.Value{Type: value.Float, Flt: f}
}
