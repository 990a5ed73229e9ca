package enrich

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// oneShard is a store with one shard.
type oneShard struct{ store.Store }

func (oneShard) ShardOf(*state.EntityUpdate, int) int { return 0 }

// additions are the updates that were added to a snapshot, each as its offset and entity.
type additions struct {
	state.Snapshot
	list []string
}

func (a *additions) Add(_ *state.Batch, u *state.EntityUpdate) {
	a.list = append(a.list, fmt.Sprintf("%d %s", u.Offset, u.Entity))
}

// After an interrupted batch some slices of a shard are ahead: they have events that the others lack.
func TestBatchIsAddedToSlicesThatLackIt(t *testing.T) {
	const lower, upper = "u1", "u2"
	ahead := state.SliceOf(state.EntityHash([]byte(lower))) + 1
	if slice := state.SliceOf(state.EntityHash([]byte(upper))); slice < ahead {
		t.Fatalf("%s is in slice %d, want one above that of %s", upper, slice, lower)
	}
	at := state.Position{Offset: 10}.WithAhead(12, ahead)
	b := &Batch{Batch: &state.Batch{Ranges: []state.PartitionRange{{To: 14, Progress: []state.Position{at}}}}}
	for offset := int64(9); offset < 14; offset++ {
		b.Update(0, offset, []byte(lower))
		b.Update(0, offset, []byte(upper))
	}
	added := &additions{}
	(&adding{store: oneShard{}, batch: b, state: added}).upTo(len(b.Updates))
	if want := []string{"10 u2", "11 u2", "12 u1", "12 u2", "13 u1", "13 u2"}; !slices.Equal(added.list, want) {
		t.Errorf("the updates %q were added, want %q", added.list, want)
	}
}
