package kinds

import (
	"math"
	"strings"
)

// deviation is the variance of a numeric field, or its root, by Welford's
// method, which does not cancel ("Note on a method for calculating corrected
// sums of squares and products", Technometrics 4, 1962).
type deviation struct {
	name   string
	sample bool // of a sample: divided by n-1, and null for one value
	root   bool
}

func (d deviation) Spec() Spec {
	s := Spec{Name: d.name, Types: numeric, Exact: true, Result: Float}
	s.Title = "variance"
	if d.root {
		s.Title = "standard deviation"
	}
	if d.sample {
		s.Title += " of a field, its values being a sample"
		s.Note = "Null where there is but one value. As in PostgreSQL, `variance` is `var_samp` and `stddev` is `stddev_samp`."
	} else {
		s.Title += " of a field, its values being all there are"
	}
	s.Example = strings.ToUpper(d.name) + "(1d, transaction, amount, user)"
	return s
}

func (d deviation) Fold(_ Call, _ int64, events []Sample) Result {
	values := fieldOf(events)
	var mean, squares float64
	for i, v := range values {
		x := v.Float64()
		delta := x - mean
		mean += delta / float64(i+1)
		squares += delta * (x - mean)
	}
	n := len(values)
	if d.sample {
		n--
	}
	r := Result{Found: len(values) > 0}
	if n > 0 {
		r.Value = float(squares / float64(n))
		if d.root {
			r.Value = float(math.Sqrt(squares / float64(n)))
		}
	}
	return r
}
