package query

import (
	"context"

	"github.com/weir-stream/weir/state"
)

// SnapshotReader is a Reader of a snapshot.
type SnapshotReader struct{ State state.Snapshot }

// Read answers reads of states in the snapshot.
func (r SnapshotReader) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	held := make([]state.WindowState, len(reads))
	for i := range reads {
		held[i] = r.State.Read(&reads[i])
	}
	return held, nil
}
