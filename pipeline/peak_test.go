package pipeline

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The greatest value counts for at least peakAge, and at most twice as long.
func TestPeak(t *testing.T) {
	p := newPeak(prometheus.GaugeOpts{Name: "x"})
	const start = 1_532_496_076_032
	for _, step := range []struct {
		at          int64
		value, want float64
	}{
		{0, 7, 7}, {1000, 3, 7}, {peakAge, 1, 7}, {2*peakAge - 1, 2, 7}, {2 * peakAge, 0, 2}, {3 * peakAge, 0, 0},
		{4 * peakAge, 5, 5}, {7 * peakAge, 1, 1},
	} {
		p.observe(step.value, start+step.at)
		if got := testutil.ToFloat64(p.gauge); got != step.want {
			t.Errorf("after %d ms the gauge is %v, want %v", step.at, got, step.want)
		}
	}
}
