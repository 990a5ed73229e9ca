package backfill

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"

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

// away is a store and a Kafka of which one or the other is away until a moment. Applying takes a tenth of a second.
type away struct{ store, kafka time.Time }

var errAway = errors.New("away")

func (a *away) Apply(context.Context, *state.Batch) error {
	if time.Now().Before(a.store) {
		return errAway
	}
	time.Sleep(100 * time.Millisecond) // of the synctest bubble
	return nil
}

func (a *away) WriteMessages(context.Context, ...kafka.Message) error {
	if time.Now().Before(a.kafka) {
		return errAway
	}
	return nil
}

// A fill rests for its work, and not for what it waited for: after an outage it goes on at once.
func TestOutagesAreNoWork(t *testing.T) {
	const ms, outage = time.Millisecond, time.Hour
	for name, c := range map[string]struct {
		store, kafka time.Duration // for how long they are away
		between      bool          // two turns, the batch is waited for
	}{
		"no outage":                           {},
		"the store is away":                   {store: outage},
		"Kafka is away":                       {kafka: outage},
		"the store is away between two turns": {store: outage, between: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				servers := &away{start.Add(c.store), start.Add(c.kafka)}
				j := &job{Partition: state.Partition{Topic: "payments"}, steps: []step{{to: 10}}, progress: make([]state.Position, 1)}
				r := &runner{
					Backfiller: New(Config{Rate: 0.5, DeadLetters: servers}), writer: servers, batch: &batch{}, spare: &batch{}, wrote: make(chan *batch, 1),
					fill: &state.Fill{Columns: map[string][]string{"payments": {"AAAAA one"}}}, jobs: map[state.Partition]*job{j.Partition: j},
					report: reporter{log: slog.New(slog.DiscardHandler)},
				}
				r.turn(t.Context(), func() {
					r.rangeOf(j)
					r.batch.skip(j.Partition, 3)
					r.submit(t.Context(), false)
				})
				if c.between {
					r.awaitBatch()
				}
				r.turn(t.Context(), func() {
					time.Sleep(100 * ms) // of the synctest bubble
					r.flush(t.Context(), false)
				})
				if lasts, want := time.Since(start), max(c.store, c.kafka)+300*ms; lasts != want {
					t.Errorf("the two turns last %v, want %v", lasts, want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := &applying{FromFiles: &FromFiles{Rate: 0.5, writer: &away{store: start.Add(outage)}}}
		a.begin(0)
		err := a.apply(t.Context(), 1, false)
		if lasts, want := time.Since(start), outage+200*ms; err != nil || lasts != want {
			t.Errorf("applying rows of files lasts %v, with error %v; want %v", lasts, err, want)
		}
	})
}
