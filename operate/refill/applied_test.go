package refill

import (
	"testing"

	"github.com/weir-stream/weir/state"
)

// What is read of the log ends where the slice of the entity has come, not where its shard has.
func TestAppliedToTheEntity(t *testing.T) {
	w := &Want{Entity: "d000001|u000002"}
	slice := state.SliceOf(state.EntityHash([]byte("d000001")))
	if slice == 0 {
		t.Fatal("the entity is in the first slice, and no fewer can be ahead")
	}
	at := state.Position{Offset: 20}
	for _, c := range []struct{ slices, want int }{{slice, 20}, {slice + 1, 50}} {
		if got := w.applied(at.WithAhead(50, c.slices)); got != int64(c.want) {
			t.Errorf("with %d slices ahead, slice %d is applied up to %d, want %d", c.slices, slice, got, c.want)
		}
	}
}
