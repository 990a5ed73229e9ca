package storetest

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// testAway checks that a fill is given up if plans without it had a partition for more than half a day: after a day its
// series may be dropped.
func testAway(t *testing.T, open func(shards int) Timed) {
	for name, test := range map[string]struct {
		away    time.Duration
		to      int64
		givenUp bool
	}{
		"for less than half a day":                    {11 * time.Hour, 40, false},
		"for more than half a day":                    {13 * time.Hour, 40, true},
		"for more than half a day without any record": {13 * time.Hour, 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(4)
			f := newFilling(t, s)
			f.take("v2", events, added)
			fill := f.fill(added)
			s.Pass(48 * time.Hour) // with it
			f.take("v1", events)
			f.applyLive(test.to)
			s.Pass(test.away / 2)
			f.take("v3", events, more)
			s.Pass(test.away / 2)
			f.take("v2", events, added)
			if test.givenUp {
				f.expectGivenUp(fill)
			} else {
				f.expectRanges(fill, state.OffsetRange{To: 30}, state.OffsetRange{From: 30, To: test.to})
			}
		})
	}
}
