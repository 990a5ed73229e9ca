package query

import (
	"context"

	"github.com/weir-stream/weir/state"
)

// Followed is a Reader of what is followed in memory.
type Followed struct{ State state.Snapshot }

// Read answers reads of what is followed.
func (f Followed) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	held := make([]state.WindowState, len(reads))
	for i := range reads {
		held[i] = f.State.Read(&reads[i])
	}
	return held, nil
}
