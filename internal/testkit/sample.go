package testkit

import "math"

// SampleBounds returns the least and the most that a correct estimate by a sample of hashes may be, as shares of the true
// number, given its standard error. One in 10^8 lies outside. Few hashes scatter widely, and more above than below: the
// k-th smallest of n hashes is near k/n, and the chance that k or more lie below a c-th of that is at most
// exp(-k·(ln c - 1 + 1/c)), by Chernoff's bound of a Poisson distribution.
func SampleBounds(standardError float64) (least, most float64) {
	const exponent = 20
	k := 1/(standardError*standardError) + 2
	beyond := func(off func(c float64) float64) float64 {
		from, to := 1.0, math.MaxFloat32
		for to/from > 1.001 {
			if c := math.Sqrt(from * to); k*off(c) < exponent {
				from = c
			} else {
				to = c
			}
		}
		return to
	}
	return 1 / beyond(func(c float64) float64 { return c - 1 - math.Log(c) }), beyond(func(c float64) float64 { return math.Log(c) - 1 + 1/c })
}
