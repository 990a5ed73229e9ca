package aggregate

import (
	"math"
	"strings"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

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
		s.Note = "Null if there is only one value, or if the squares of the deviations exceed the range of floats. As in PostgreSQL, `variance` is `var_samp` and `stddev` is `stddev_samp`."
	} else {
		s.Title = "population " + s.Title
		s.Note = "Null if the squares of the deviations exceed the range of floats."
	}
	s.Example = strings.ToUpper(d.name) + "(1d, transaction, amount, user)"
	return s
}

func (deviation) Measures(Call) []state.Measure { return []state.Measure{state.ValueMoments} }

func (d deviation) Merge(_ Call, _ int64, s []state.WindowState) Result { return d.of(s[0].Moments) }

func (d deviation) Fold(_ Call, _ int64, events []Sample) Result {
	var m state.Moments
	for _, v := range fieldOf(events) {
		m = m.Add(state.MomentsOf(v.Float64()))
	}
	return d.of(m)
}

func (d deviation) of(m state.Moments) Result {
	n := m.N
	if d.sample {
		n--
	}
	r := Result{Found: m.N > 0}
	if n > 0 {
		r.Value = float(m.Squares / float64(n))
		if d.root {
			r.Value = float(math.Sqrt(m.Squares / float64(n)))
		}
	}
	return r
}
