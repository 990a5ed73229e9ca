package aggregate

import (
	"math"
	"strings"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// negligible is the greatest relative error of a variance of floats that is not stated.
const negligible = 1e-9

// deviation is the variance of a numeric field, or its square root; see Moments.
type deviation struct {
	name   string
	sample bool // of a sample: divided by n-1, and null for one value
	root   bool
}

func (d deviation) Spec() Spec {
	s := Spec{Name: d.name, Types: numeric, Exact: true, Result: value.Float}
	s.Title = "variance of a field"
	if d.root {
		s.Title = "standard deviation of a field"
	}
	if d.sample {
		s.Title = "sample " + s.Title
	} else {
		s.Title = "population " + s.Title
	}
	s.Note = "Of a sample null if there is only one value; null and `capped` if the squares of the deviations exceed the range of floats. Of ints and decimals it is the float nearest to the true value. Of n floats the relative error is at most n·2^-51·√(1 + mean²/variance); if that exceeds 10^-9, `relative_error` states it and `exact` is false."
	s.Example = strings.ToUpper(d.name) + "(1d, transaction, amount, user)"
	return s
}

func (deviation) Measures(Call) []state.Measure { return []state.Measure{state.ValueMoments} }

func (d deviation) Merge(c Call, _ int64, s []state.WindowState) Result {
	return d.of(c, &s[0].Moments)
}

func (d deviation) Fold(c Call, _ int64, events []Sample) Result {
	var m state.Moments
	for _, v := range fieldOf(events) {
		m = m.Add(state.MomentsOf(&v))
	}
	return d.of(c, &m)
}

func (d deviation) of(c Call, m *state.Moments) Result {
	n := m.N
	if d.sample {
		n--
	}
	r := Result{Found: m.N > 0}
	if n > 0 {
		spread := m.Spread(c.Type, c.Scale, n)
		if d.root {
			spread = math.Sqrt(spread)
		}
		r.Value = float(spread)
		r.Capped = r.Value.IsNull()
		if m.SpreadError(c.Type) > negligible && !r.Value.IsNull() {
			r.RelativeError = m.SpreadError(c.Type)
		}
	}
	return r
}
