package backfill

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-stream/weir/state"
)

// A turn begins when no live batch is under way, or after the longest wait. The wait does not count as work.
func TestTurnsGiveWay(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		live          []time.Duration // how long batches are under way
		rate          float64
		begins, lasts time.Duration
	}{
		"nothing live":              {nil, 1, 0, 4 * ms},
		"a batch":                   {[]time.Duration{5 * ms}, 1, 5 * ms, 9 * ms},
		"the last of several":       {[]time.Duration{8 * ms, 5 * ms, 12 * ms}, 1, 12 * ms, 16 * ms},
		"always a batch":            {[]time.Duration{time.Hour}, 1, longestWait, longestWait + 4*ms},
		"rest after half of a core": {[]time.Duration{5 * ms}, 0.5, 5 * ms, 13 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := &Live{}
				for _, d := range c.live {
					live.Begin()
					time.AfterFunc(d, live.End)
				}
				turns := turns{rate: c.rate, live: live}
				start := time.Now()
				turns.take(t.Context(), func() time.Duration {
					if begins := time.Since(start); begins != c.begins {
						t.Errorf("work begins after %v, want %v", begins, c.begins)
					}
					time.Sleep(4 * ms) // of the synctest bubble
					return 0
				})
				if lasts := time.Since(start); lasts != c.lasts {
					t.Errorf("the turn ends after %v, want %v", lasts, c.lasts)
				}
			})
		})
	}
}

// Live batches are counted again after none was under way, and a fill that ends does not wait.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live Live
		<-live.Quiet()
		for range 2 {
			live.Begin()
			select {
			case <-live.Quiet():
				t.Error("it is quiet while a batch is under way")
			default:
			}
			live.End()
			<-live.Quiet()
		}
		live.Begin()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		if live.giveWay(ctx); time.Since(start) > 0 {
			t.Errorf("a fill whose context has ended waits for %v", time.Since(start))
		}
	})
}

// Batches have few mutations where live events may wait for them.
func TestFullBatches(t *testing.T) {
	mutations := func(n int) *batch { return &batch{Batch: state.Batch{Mutations: make([]state.Mutation, n)}} }
	for name, c := range map[string]struct {
		live  *Live
		batch *batch
		want  bool
	}{
		"few mutations":               {&Live{}, mutations(liveMutations - 1), false},
		"many mutations":              {&Live{}, mutations(liveMutations), true},
		"many, without live events":   {nil, mutations(liveMutations), false},
		"events, without live events": {nil, &batch{events: maxEvents}, true},
		"bytes, without live events":  {nil, &batch{bytes: maxBytes}, true},
	} {
		r := &runner{Backfiller: New(Config{Live: c.live}), batch: c.batch}
		if got := r.full(); got != c.want {
			t.Errorf("%s: a batch is full: %v, want %v", name, got, c.want)
		}
	}
}
