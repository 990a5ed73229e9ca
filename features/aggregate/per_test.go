package aggregate

import (
	"fmt"
	"math"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/value"
)

// If the series of a function drop different categories to save bytes, the answer has only those that all of them hold.
func TestCategoriesAreCompleteInAllSeries(t *testing.T) {
	const shops, amount = 40, 1_000_000
	for name, bytes := range map[string][2]int{"more of the sums": {300, 1000}, "more of the counts": {1000, 100}, "of both": {150, 120}, "nothing": {2000, 2000}} {
		states := make([]state.WindowState, 2)
		for i, measure := range []state.Measure{state.Sum, state.CountValues} {
			s := &state.Series{Measure: measure, Type: value.Int, Per: "shop", Bytes: bytes[i]}
			held := packed.New(s)
			for shop := range shops {
				for range 2 {
					num := measure.Num(state.Input{Value: &value.Value{Type: value.Int, Num: amount}})
					held.Apply(&state.Mutation{Series: s, Num: num, Text: &state.Text{Key: fmt.Appendf(nil, "shop %02d", shop)}})
				}
			}
			kept := packed.New(s)
			if err := kept.Merge(packed.Fit(nil, s, held)); err != nil {
				t.Fatal(err)
			}
			states[i] = kept.Read(&state.Read{Series: s, First: math.MinInt64, Last: math.MaxInt64})
		}
		r := MergePer(avg{}, Call{Type: value.Int}, value.String, 0, 0, states)
		least := min(len(states[0].Groups), len(states[1].Groups))
		if len(r.Items) != least || least == 0 || (least < shops) != (name != "nothing") {
			t.Errorf("%s: the answer has %d categories, and the series have %d and %d", name, len(r.Items), len(states[0].Groups), len(states[1].Groups))
		}
		for _, i := range r.Items {
			if i.Value.Flt != amount {
				t.Errorf("%s: the average of %s is %v, want %d", name, i.Category.Str, i.Value.Flt, amount)
			}
		}
	}
}
