package fetch

import (
	"testing"
	"time"
)

// The age of an open transaction restarts when the last stable offset moves, and ends when nothing
// is after it.
func TestLagBehindOpenTransactions(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	ends := unknownEnds
	for _, step := range []struct {
		seconds             int
		highWatermark, last int64
		isolation           Isolation
		want                Lag // of position 10, a second later
	}{
		{0, 10, 10, ReadCommitted, Lag{}},
		{1, 14, 10, ReadCommitted, Lag{4, 4, time.Second}},
		{5, 20, 10, ReadCommitted, Lag{10, 10, 5 * time.Second}},
		{7, 20, 16, ReadCommitted, Lag{10, 4, time.Second}}, // the oldest has ended, another is open
		{9, 25, 16, ReadCommitted, Lag{15, 9, 3 * time.Second}},
		{11, 25, 25, ReadCommitted, Lag{15, 0, 0}},
		{13, 29, 25, ReadCommitted, Lag{19, 4, time.Second}},
		{15, 29, -1, ReadUncommitted, Lag{19, 0, 0}},
		{17, 25, 29, ReadCommitted, Lag{15, 0, 0}}, // a newly elected follower: never less than 0
	} {
		ends.move(step.isolation, step.highWatermark, step.last, at(step.seconds))
		if got := ends.lag(10, at(step.seconds+1)); got != step.want {
			t.Errorf("after %d s: %+v, want %+v", step.seconds, got, step.want)
		}
	}
}
