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
		quiet := live.Quiet()
		live.Begin()
		live.End()
		live.End()
		<-quiet // also for those that waited before the second batch
		live.Begin()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		if live.giveWay(ctx); time.Since(start) > 0 {
			t.Errorf("a fill whose context has ended waits for %v", time.Since(start))
		}
	})
}

// Batches have few mutations while a live batch is under way and for a while after it, and are full otherwise.
func TestFullBatches(t *testing.T) {
	mutations := func(n int) *batch { return &batch{Batch: state.Batch{Mutations: make([]state.Mutation, n)}} }
	expect := func(when string, live *Live, few bool) {
		t.Helper()
		r := runner{Backfiller: New(Config{Live: live, MaxEvents: 20, MaxBytes: 30})}
		for _, c := range []struct {
			what  string
			batch *batch
			want  bool
		}{
			{"few mutations", mutations(liveMutations - 1), false},
			{"more mutations", mutations(liveMutations), few},
			{"few events", &batch{events: 19, bytes: 29}, false},
			{"more events", &batch{events: 20}, true},
			{"more bytes", &batch{bytes: 30}, true},
		} {
			if r.batch = c.batch; r.full() != c.want {
				t.Errorf("%s: a batch of %s is full: %v, want %v", when, c.what, !c.want, c.want)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		live := NewLive()
		expect("without live events", nil, false)
		expect("when the process begins", live, true)
		time.Sleep(calm) // of the synctest bubble
		expect("before the first live batch", live, false)
		live.Begin()
		live.Begin()
		live.End()
		time.Sleep(2 * calm)
		expect("while a live batch is under way", live, true)
		live.End()
		time.Sleep(calm - time.Nanosecond)
		expect("shortly after it", live, true)
		time.Sleep(time.Nanosecond)
		expect("a while after it", live, false)
	})
}
