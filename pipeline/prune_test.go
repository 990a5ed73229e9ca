package pipeline

import (
	"testing"
	"time"
)

// State is pruned by the newest record that every shard has had for the grace period, and by none before.
func TestPruning(t *testing.T) {
	t.Parallel()
	p := pruning{grace: 500 * time.Millisecond}
	began := time.Now()
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	for _, step := range []struct {
		ms      int
		applied int64 // 0 for nothing
		want    int64 // before that
	}{
		{0, 100, 0},
		{100, 200, 0},
		{499, 0, 0},
		{500, 0, 100},
		{600, 300, 100}, // 200 was not kept: 300 begins another period
		{1000, 400, 100},
		{1100, 500, 300},
		{9000, 0, 500},
		{9001, 600, 500},
		{9500, 0, 500},
		{9501, 0, 600},
	} {
		if got := p.by(at(step.ms)); got != step.want {
			t.Errorf("after %d ms state is pruned by %d, want %d", step.ms, got, step.want)
		}
		if step.applied != 0 {
			p.applied(step.applied, at(step.ms))
		}
	}
}
