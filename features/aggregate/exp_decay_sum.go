package aggregate

import (
	"math"

	"github.com/weir-stream/weir/value"
)

// expDecaySum is the sum of a numeric field in which the weight of every value halves with each
// half-life since its event.
type expDecaySum struct{}

func (expDecaySum) Spec() Spec {
	return Spec{
		Name: "exp_decay_sum", Title: "exponentially decayed sum of a field: the weight of a value halves with each `half_life`",
		Note:  "The age of a value is measured at the moment asked for, minus the window's `delay`. Null and `capped` if the sum exceeds the range of floats.",
		Types: numeric, Exact: true, Neutral: float(0),
		Parameters: []Parameter{{Name: "half_life", Type: Span}},
		Result:     value.Float, Example: "EXP_DECAY_SUM(7d, transaction, amount, user, half_life=1d)",
	}
}

func (expDecaySum) Fold(c Call, at int64, events []Sample) Result {
	var sum value.FloatSum // rounded once: a great value and its opposite hide nothing
	found := false
	for _, e := range events {
		if e.Value.IsNull() {
			continue
		}
		found = true
		sum.Add(e.Value.Float64() * math.Exp2(-float64(at-e.Time)/float64(c.Duration)))
	}
	v := float(sum.Float())
	return Result{Value: v, Found: found, Capped: v.IsNull()}
}
