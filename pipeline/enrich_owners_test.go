package pipeline_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Two owners of every partition at once, as there are for a moment when one hangs and the group
// reassigns its partitions, write the same.
func TestEnrichByTwoOwners(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		b := newEnrichBench(t)
		sent := purchases(seed, 900)
		b.write(sent[:300]...)
		b.run()
		first := b.stop
		b.config.Group += "-other"
		b.run()
		b.write(sent[300:600]...)
		b.write(sent[600:]...)
		b.committed(900)
		b.checkEnriched(sent)
		for _, stop := range []func() error{first, b.stop} {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// held delays reads of the state until released.
type held struct {
	store.Store
	once *sync.Once
	read chan struct{} // closed once the first reading is done
	let  chan struct{}
}

func (h held) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	found, err := h.Store.Snapshot(ctx, reads)
	h.once.Do(func() {
		close(h.read)
		<-h.let
	})
	return found, err
}

// A processor that hung after a read does not answer from it once another one has applied more, even if less than its
// own batch.
func TestEnrichFromStaleSnapshot(t *testing.T) {
	t.Parallel()
	b := newEnrichBench(t)
	b.config.Workers = 1
	sent := purchases(9, 300)
	b.write(sent...)
	group, few := b.config.Group, b.config.MaxEvents
	b.config.MaxEvents = len(sent)
	hung := held{b.store, new(sync.Once), make(chan struct{}), make(chan struct{})}
	b.config.Store = hung
	b.run()
	await(t, hung.read, "a reading")
	crashed, calls := make(chan struct{}), new(atomic.Int64)
	b.config.Store = writing{b.store, func() store.Writer { return crashing{b.store.NewWriter(), calls, 3, crashBehind, crashed} }}
	b.config.Group, b.config.MaxEvents = group+"-other", few
	b.run()
	await(t, crashed, "a crash")
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	close(hung.let)
	b.config.Group = group
	b.committed(300)
	if n := b.checkEnriched(sent); n != 0 {
		t.Errorf("%d events that the other processor had applied were written again", n)
	}
}
