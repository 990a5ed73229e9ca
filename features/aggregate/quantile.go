package aggregate

import (
	"slices"
	"sort"
	"strconv"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// quantile is the least value of a field such that a share p of its values is not greater (SQL's
// percentile_disc); from tiles it is near that value.
type quantile struct{}

func (quantile) Spec() Spec {
	return Spec{
		Name: "quantile", Title: "`p`-quantile of a field: the least value such that a share `p` of the values is not greater",
		Note:  "The result is one of the values, as with SQL's `percentile_disc`: `p=0.5` is the median, the lower one of two. From tiles, where values are counted in the bins of a DDSketch, the result is within the relative error `error`, which the answer states.",
		Types: []value.Type{value.Int, value.Float, value.Decimal, value.Timestamp}, LogTypes: []value.Type{value.Timestamp}, Exact: true,
		Parameters: []Parameter{{Name: "p", Type: Fraction}, {Name: "error", Type: Accuracy, Default: "0.01"}},
		Example:    "QUANTILE(30d, transaction, amount, user, p=0.95)",
	}
}

func (quantile) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }

func (quantile) Keys(c Call) Keys {
	return Keys{Name: "ddsketch " + strconv.FormatFloat(c.Error, 'g', -1, 64), Append: newDDSketch(c.Type, c.Error).appendKey}
}

func (quantile) Merge(c Call, _ int64, s []state.WindowState) Result {
	r := Result{Found: len(s[0].Groups) > 0, RelativeError: c.Error}
	if r.Found {
		d := newDDSketch(c.Type, c.Error)
		r.Value = d.value(c, d.quantile(c.P, s[0].Groups))
	}
	return r
}

func (quantile) Fold(c Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	if values == nil {
		return Result{}
	}
	slices.SortFunc(values, value.Compare)
	// Shares are compared as quotients: 7/100 is 0.07, but 0.07*100 is more than 7.
	i := sort.Search(len(values)-1, func(i int) bool { return float64(i+1)/float64(len(values)) >= c.P })
	return Result{Value: values[i], Found: true}
}
