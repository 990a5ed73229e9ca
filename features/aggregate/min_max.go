package aggregate

import (
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// least and greatest are min and max, which are builtins of Go.
type (
	least    struct{}
	greatest struct{}
)

var ordered = []value.Type{value.Int, value.Float, value.Decimal, value.Timestamp, value.String}

const orderNote = "Strings are ordered byte by byte."

func (least) Spec() Spec {
	return Spec{
		Name: "min", Title: "least value of a field", Note: orderNote,
		Types: ordered, Exact: true,
		Example: "MIN(7d, transaction, amount, user)",
	}
}

func (greatest) Spec() Spec {
	return Spec{
		Name: "max", Title: "greatest value of a field", Note: orderNote,
		Types: ordered, Exact: true,
		Example: "MAX(7d, transaction, amount, user)",
	}
}

func (least) Measures(c Call) []state.Measure {
	if c.Type == value.String {
		return []state.Measure{state.LeastText}
	}
	return []state.Measure{state.Min}
}

func (greatest) Measures(c Call) []state.Measure {
	if c.Type == value.String {
		return []state.Measure{state.GreatestText}
	}
	return []state.Measure{state.Max}
}

func (least) fromTotals()    {}
func (greatest) fromTotals() {}

func (least) Merge(_ Call, _ int64, s []state.WindowState) Result { return extreme(s[0].Buckets, -1) }
func (greatest) Merge(_ Call, _ int64, s []state.WindowState) Result {
	return extreme(s[0].Buckets, +1)
}

func (least) Fold(_ Call, _ int64, events []Sample) Result    { return extreme(bucketsOf(events), -1) }
func (greatest) Fold(_ Call, _ int64, events []Sample) Result { return extreme(bucketsOf(events), +1) }

// extreme returns the greatest value if sign is positive, and else the least.
func extreme(buckets []state.Bucket, sign int) Result {
	if len(buckets) == 0 {
		return Result{}
	}
	best := buckets[0].Value
	for _, b := range buckets[1:] {
		if value.Compare(b.Value, best)*sign > 0 {
			best = b.Value
		}
	}
	return Result{Value: best, Found: true}
}

func (least) Running(Call) Running    { return &runningExtreme{sign: -1} }
func (greatest) Running(Call) Running { return &runningExtreme{sign: +1} }

// runningExtreme holds those values in the window that no later one surpasses: the first of them is
// the extreme.
type runningExtreme struct {
	sign           int
	added, removed int // values
	held           []candidate
}

// candidate is a value with the number of values added before it.
type candidate struct {
	value.Value
	index int
}

func (r *runningExtreme) Add(e *Sample) {
	if e.Value.IsNull() {
		return
	}
	v := e.Value
	v.Str = slices.Clone(v.Str) // the log's memory is reused
	for n := len(r.held); n > 0 && value.Compare(v, r.held[n-1].Value)*r.sign > 0; n-- {
		r.held = r.held[:n-1]
	}
	r.held = append(r.held, candidate{v, r.added})
	r.added++
}

func (r *runningExtreme) Remove(e *Sample) {
	if e.Value.IsNull() {
		return
	}
	if r.held[0].index == r.removed {
		r.held = r.held[1:]
	}
	r.removed++
}

func (r *runningExtreme) Result(to *value.Value) (found, capped bool) {
	if len(r.held) == 0 {
		*to = value.Value{}
		return false, false
	}
	*to = r.held[0].Value
	return true, false
}
