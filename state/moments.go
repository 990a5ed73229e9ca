package state

// Moments are the number of values, their mean, and the sum of their squared deviations from it. They are merged by the
// formula of Chan, Golub and LeVeque ("Updating Formulae and a Pairwise Algorithm for Computing Sample Variances",
// 1979), which avoids the cancellation that a sum of squares has for large values close to each other. The order of
// merging affects only the last digits.
type Moments struct {
	N             int64
	Mean, Squares float64
}

// MomentsOf returns the moments of one value.
func MomentsOf(x float64) Moments { return Moments{N: 1, Mean: x} }

// Add merges the moments of two sets of values.
func (m Moments) Add(o Moments) Moments {
	if m.N == 0 || o.N == 0 {
		return Moments{N: m.N + o.N, Mean: m.Mean + o.Mean, Squares: m.Squares + o.Squares}
	}
	n := m.N + o.N
	delta, share := o.Mean-m.Mean, float64(o.N)/float64(n)
	return Moments{
		N: n, Mean: m.Mean + delta*share,
		Squares: m.Squares + o.Squares + delta*delta*float64(m.N)*share,
	}
}
