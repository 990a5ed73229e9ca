package pipeline

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// The greatest value counts for at least peakAge, and at most twice as long.
func TestPeak(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_532_496_076_032)
	start := now
	p := newPeak("x", "", func() time.Time { return now })
	for _, step := range []struct {
		at          int64
		value, want float64
	}{
		{0, 7, 7}, {1000, 3, 7}, {peakAge, 1, 7}, {2*peakAge - 1, 2, 7}, {2 * peakAge, 0, 2}, {3 * peakAge, 0, 0},
		{4 * peakAge, 5, 5}, {7 * peakAge, 1, 1},
	} {
		now = start.Add(time.Duration(step.at) * time.Millisecond)
		p.observe(step.value)
		if got := testutil.ToFloat64(p); got != step.want {
			t.Errorf("after %d ms the gauge is %v, want %v", step.at, got, step.want)
		}
	}
	// It also ends if nothing is observed any more.
	now = now.Add(peakAge * time.Millisecond)
	if got := testutil.ToFloat64(p); got != 1 {
		t.Errorf("after 5 minutes without values the gauge is %v, want 1", got)
	}
	now = now.Add(peakAge * time.Millisecond)
	if got := testutil.ToFloat64(p); got != 0 {
		t.Errorf("after 10 minutes without values the gauge is %v, want 0", got)
	}
}
