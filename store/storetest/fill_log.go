package storetest

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testFillLog checks that fills are given up for a partition that continues in another log, wherever that is, and that they
// go on in a log of which more is known.
func testFillLog(t *testing.T, open func() store.Store) {
	first := state.LogID{Cluster: "c1"}
	more, other := state.LogID{Cluster: "c1", Topic: "t1"}, state.LogID{Cluster: "c2"}
	for name, test := range map[string]struct {
		slices int // ahead, at offset 40
		log    state.LogID
		offset int64
		broken bool
	}{
		"more is known of its log":                       {0, more, 30, false},
		"more is known of its log, which lost records":   {0, more, 40, false},
		"it continues in another log":                    {0, other, 40, true},
		"it continues in another log at the same offset": {0, other, 30, true},
		"its slices catch up, but in another log":        {20, other, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFilling(t, open())
			f.placeIn(first, func(at state.Position) state.Position {
				at.Log = first.Tag()
				return at
			})
			if test.slices > 0 {
				f.skipAhead(40, test.slices)
			}
			f.take("v2", events, added)
			fill := f.fill(added)
			f.placeIn(test.log, func(state.Position) state.Position {
				return state.Position{Offset: test.offset, Epoch: -1, Log: test.log.Tag()}
			})
			for shard, filling := range f.look(fill) {
				if filling.Broken != test.broken {
					t.Errorf("the fill in shard %d is %+v, want it broken: %v", shard, filling, test.broken)
				}
			}
		})
	}
}
