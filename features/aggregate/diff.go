package aggregate

import (
	"math"

	"github.com/weir-stream/weir/value"
)

// diff is the latest value of a field minus the one before it.
type diff struct{}

func (diff) Spec() Spec {
	return Spec{
		Name: "diff", Title: "latest value of a field minus the one before it",
		Note:  "The difference of two timestamps is in milliseconds. Null if there is only one value; null and `capped` if the difference does not fit into 64 bits.",
		Types: []value.Type{value.Int, value.Float, value.Decimal, value.Timestamp}, Exact: true, Span: true,
		Example: "DIFF(7d, transaction, amount, user)",
	}
}

func (diff) Fold(_ Call, _ int64, events []Sample) Result {
	newer, ok := fromLast(events, 0)
	older, _ := fromLast(events, 1)
	if older.IsNull() {
		return Result{Found: ok}
	}
	v := newer
	if v.Type == value.Timestamp {
		v.Type = value.Int
	}
	v.Flt -= older.Flt
	v.Num -= older.Num
	if fits := (v.Num < newer.Num) == (older.Num > 0) && !math.IsInf(v.Flt, 0); !fits {
		return Result{Found: true, Capped: true}
	}
	return Result{Value: v, Found: true}
}

// Settled implements Latest.
func (diff) Settled(_ Call, events []Sample) bool { return hasValues(events, 2) }
