package storetest

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// testFillLog checks that fills are given up for a partition that continues in another log, wherever that is.
func testFillLog(t *testing.T, open func() store.Store) {
	for name, test := range map[string]struct {
		slices int // ahead, at offset 40
		offset int64
		broken bool
	}{
		"its log gets another name":               {0, 30, false}, // brokers report more of it
		"it continues in another log":             {0, 40, true},
		"its slices catch up, but in another log": {20, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFilling(t, open())
			if test.slices > 0 {
				f.skipAhead(40, test.slices)
			}
			f.take("v2", events, added)
			fill := f.fill(added)
			f.place(func(state.Position) state.Position {
				return state.Position{Offset: test.offset, Epoch: -1, Log: "other"}
			})
			for shard, filling := range f.look(fill) {
				if filling.Broken != test.broken {
					t.Errorf("the fill in shard %d is %+v, want it broken: %v", shard, filling, test.broken)
				}
			}
		})
	}
}
