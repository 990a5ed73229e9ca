package features

import (
	"context"

	"github.com/weir-stream/weir/features/kinds"
)

// Wanted lists what Read will read first: all of it where no feature is of the
// second degree. It holds until the next Reset.
func (r *Reading) Wanted() []kinds.Read { return r.reads }

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
