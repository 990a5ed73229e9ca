package serve

import (
	"context"
	"testing"

	"github.com/weir-stream/weir/state"
)

// recycler records what it has read, and what it gets back.
type recycler struct {
	*fakeReader
	read, back []state.WindowState
}

func (r *recycler) Read(ctx context.Context, reads []state.Read) (states []state.WindowState, err error) {
	r.read, err = r.fakeReader.Read(ctx, reads)
	return r.read, err
}

func (r *recycler) Recycle(states []state.WindowState) { r.back = states }

// Window states go back to the store once the question is answered.
func TestSlicesAreRecycled(t *testing.T) {
	r := &recycler{fakeReader: &fakeReader{}}
	do(t, newHandler(r, func(*setup) {}), "POST", queryPath, `{"features": ["device_tx_7d"], "entities": [{"device_id": "d1"}]}`)
	if len(r.read) == 0 || len(r.back) != len(r.read) || &r.back[0] != &r.read[0] {
		t.Errorf("%d window states were read and %d recycled, want the same ones", len(r.read), len(r.back))
	}
}
