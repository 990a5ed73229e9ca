package testkit

import "testing"

// A sample of a dozen hashes may be ten times the truth, one of ten thousand is near it.
func TestSampleBounds(t *testing.T) {
	for _, c := range []struct{ standardError, least, most, off float64 }{{0.3, 0.26, 11.5, 0.1}, {0.1, 0.53, 2.0, 0.05}, {0.0081, 0.95, 1.052, 0.003}} {
		least, most := SampleBounds(c.standardError)
		if max(least-c.least, c.least-least) > c.off || max(most-c.most, c.most-most) > c.off {
			t.Errorf("with a standard error of %v: %v to %v, want about %v to %v", c.standardError, least, most, c.least, c.most)
		}
	}
}
