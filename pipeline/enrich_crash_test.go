package pipeline_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// errCrash is the store's error in a process that has crashed.
var errCrash = errors.New("crashed")

// crash is what happens at a call of the writer, the last of its process.
type crash int

const (
	crashBefore crash = iota // none of the written events is applied
	crashWithin              // some shards have applied the batch
	crashBehind              // all shards have, but the processor has no reply
	crashes
)

// crashing makes a process crash at a call of its writers.
type crashing struct {
	store.Writer
	calls   *atomic.Int64
	at      int64
	how     crash
	crashed chan struct{}
}

func (c crashing) Apply(ctx context.Context, b *state.Batch) error {
	if len(b.Ranges) == 0 { // no partition is read yet
		return c.Writer.Apply(ctx, b)
	}
	n := c.calls.Add(1)
	if n < c.at {
		return c.Writer.Apply(ctx, b)
	}
	if n > c.at {
		return errCrash
	}
	defer close(c.crashed)
	half := *b
	half.Ranges = slices.Clone(b.Ranges)
	for i := range half.Ranges {
		half.Ranges[i].Progress = slices.Clone(b.Ranges[i].Progress)
	}
	switch c.how {
	case crashWithin:
		half.EveryShard = false
		half.Updates = slices.DeleteFunc(slices.Clone(b.Updates), func(u state.EntityUpdate) bool { return state.Shard(u.Hash, 8)%2 == 0 })
		fallthrough
	case crashBehind:
		if err := c.Writer.Apply(ctx, &half); err != nil {
			return err
		}
	}
	return errCrash
}

func await(t *testing.T, happened <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not happen in time", what)
	}
}

// If a processor is killed anywhere between writing events and applying them, no event is missing, and events that are
// written again are the same.
func TestEnrichAcrossCrashes(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newEnrichBench(t)
		sent := purchases(seed, 900)
		b.write(sent...)
		for i := range 8 {
			crashed := make(chan struct{})
			calls := new(atomic.Int64)
			at := 1 + random.Int64N(4)
			b.config.Store = writing{b.store, func() store.Writer {
				return crashing{b.store.NewWriter(), calls, at, crash(i) % crashes, crashed}
			}}
			b.run()
			await(t, crashed, "a crash")
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
		}
		b.config.Store = b.store
		b.run()
		b.committed(900)
		if n := b.checkEnriched(sent); n == 0 {
			t.Error("no event was written again; the crashes had no effect")
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// After Redis is put back to an older copy, events are written again, the same as before.
func TestEnrichWhenRedisGoesBackInTime(t *testing.T) {
	t.Parallel()
	b := newEnrichBench(t)
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	sent := purchases(8, 900)
	b.write(sent[:300]...)
	b.run()
	b.committed(300)
	old := server.SaveCopy()
	b.write(sent[300:600]...)
	b.committed(600)
	server.RestoreCopy(old)
	b.write(sent[600:]...)
	b.committed(900)
	if n := b.checkEnriched(sent); n == 0 {
		t.Error("no event was written again")
	}
}
