package enrich

import (
	"context"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// progressed is a store with a progress.
type progressed struct {
	store.Store
	by [][]state.Position
}

func (p progressed) Progress(context.Context, []state.Partition) ([][]state.Position, error) {
	return p.by, nil
}

// When the master of a shard that could not be claimed answers again, its progress is news, and does not mean that the
// store went back in time: the partition is left out of the batch for a reason.
func TestShardThatCouldNotBeClaimedIsFound(t *testing.T) {
	at := func(offset int64) state.Position { return state.Position{Offset: offset, Epoch: 3, Log: "log"} }
	b := &Batch{Batch: &state.Batch{Ranges: []state.PartitionRange{
		{Epoch: 3, Progress: []state.Position{at(10), at(20)}},
		{Epoch: 3, Progress: []state.Position{at(7), state.NoPosition}, Lagging: []bool{false, true}},
	}}}
	failures := map[int]error{}
	b.Fail = func(rangeIndex int, err error) { b.Ranges[rangeIndex].Behind, failures[rangeIndex] = true, err }
	e := &Enricher{store: progressed{by: [][]state.Position{{at(10), at(20)}, {at(7), at(5)}}}}
	for try, want := range []bool{false, true} { // the state is read again without the range
		confirmed, err := e.confirm(t.Context(), b)
		if err != nil || confirmed != want {
			t.Errorf("try %d: confirmed %v, error %v; want %v", try, confirmed, err, want)
		}
	}
	if b.Ranges[0].Behind || !b.Ranges[1].Behind || len(failures) != 1 || failures[1] == nil {
		t.Errorf("behind: %v and %v, failures %v; want a failure of the second range only", b.Ranges[0].Behind, b.Ranges[1].Behind, failures)
	}
}
