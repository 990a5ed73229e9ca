package features

import (
	"context"

	"github.com/weir-stream/weir/features/kinds"
)

// Followed is a Reader of what is followed in memory.
type Followed struct{ State kinds.Following }

// Read answers reads of what is followed.
func (f Followed) Read(_ context.Context, reads []kinds.Read) ([]kinds.Slice, error) {
	held := make([]kinds.Slice, len(reads))
	for i := range reads {
		held[i] = f.State.Read(&reads[i])
	}
	return held, nil
}
