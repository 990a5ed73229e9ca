package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// A full memory refuses a batch, and recovers: compacting the batch's keys makes room for it, here by dropping state
// that they no longer need. The batch counts once.
func TestRecoveryFromFullMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.New(t, redistest.Options{})
	client := server.Client(t)
	s := New(client, testkit.Namespace(t), 2)
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
	start(t, s, transactions)
	w := s.NewWriter().(*writer)
	const devices, rounds = 300, 5 // in the last round nothing of the others is kept
	long := strings.Repeat("u", 400)
	round := func(n int64) *state.Batch {
		b := begin(t, s, transactions)
		for i := range int64(devices) {
			fill(b, 0, event{offset: n*devices + i, device: fmt.Sprint("device", i), user: long + fmt.Sprint(n), time: (100 + n/rounds*100) * day, cents: 5})
		}
		return b
	}
	for n := range int64(rounds) {
		apply(t, w, round(n))
	}
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(info, "used_memory:")
	used, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := client.ConfigSet(ctx, "maxmemory", strconv.Itoa(used-16<<10)).Err(); err != nil {
		t.Fatal(err)
	}
	b := round(rounds)
	err = w.Apply(ctx, b)
	if !memoryFull(unwrapped(err)) {
		t.Fatalf("with the memory full: got error %v, want Redis's refusal of the call", err)
	}
	testkit.Eventually(t, time.Minute, "the batch applied", func() (bool, string) {
		err := w.Apply(ctx, b)
		return err == nil, fmt.Sprint(err)
	})
	for _, device := range []string{"device0", fmt.Sprint("device", devices-1)} {
		states, err := s.Read(ctx, []state.Read{{Series: events, Entity: device, First: 200, Last: 200}})
		if err != nil || len(states[0].Buckets) != 1 || states[0].Buckets[0].Value.Num != 1 {
			t.Errorf("%s: got %+v, error %v; want 1 event of the last day", device, states, err)
		}
	}
}

// A refused batch of more keys than are read at once has all of them compacted, in several attempts: its first keys may
// have nothing to free.
func TestFullMemoryRelievesAllKeys(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := s.newWriter()
		c := scriptCall{}
		for i := range maxRelieved * 3 / 2 {
			key := deviceKey(s, fmt.Sprint("d", i))
			s.redis.Set(t.Context(), key, strings.Repeat("-", minRelieved), time.Minute)
			c.keys = append(c.keys, &key)
		}
		w.calls, w.refused = []scriptCall{c}, true
		for attempt, want := range []int{maxRelieved, len(c.keys)} {
			if w.relieve(t.Context()); len(w.candidates) != want {
				t.Errorf("attempt %d: %d keys are candidates, want %d", attempt+1, len(w.candidates), want)
			}
		}
	})
}

// Where a full memory refuses all else, operators look at state, and free the memory that a resharding takes.
func TestOperatorsOfAFullMemory(t *testing.T) {
	t.Parallel()
	client := redistest.New(t, redistest.Options{}).Client(t)
	r := &resharded{T: t, store: New(client, testkit.Namespace(t), 2), random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
	if err := r.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, r.store, transactions)
	r.write(20)
	limit := func(bytes string) {
		t.Helper()
		if err := client.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
			t.Fatal(err)
		}
	}
	stopped := errors.New("stopped")
	half := r.resharder()
	half.Await = func(context.Context) error { // it waits for the replicas before it copies anything, too
		if len(r.keys(4)) <= 4 {
			return nil
		}
		return stopped
	}
	if err := half.Spread(t.Context(), 4); !errors.Is(err, stopped) || len(r.keys(4)) <= 4 {
		t.Fatalf("want a resharding that ends half way: error %v, %d keys", err, len(r.keys(4)))
	}
	limit("1")
	if held, err := r.store.Inspect(t.Context(), beside, "d0"); err != nil || len(held.Packed) == 0 {
		t.Errorf("inspecting a key: %d bytes, error %v", len(held.Packed), err)
	}
	if err := r.resharder().Cancel(t.Context()); err != nil || len(r.keys(4)) > 0 {
		t.Errorf("cancelling: error %v; %d keys are left", err, len(r.keys(4)))
	}
	limit("0")
	r.to(4)
	limit("1")
	if err := r.resharder().DeleteOld(t.Context()); err != nil || len(r.keys(2)) != 2 {
		t.Errorf("deleting the old keys: error %v; %d are left, want 2 of progress", err, len(r.keys(2)))
	}
	r.check()
}

// unwrapped is the innermost error.
func unwrapped(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = inner.Unwrap()
	}
}

// Each version of Redis has its own way to say that a script could not write because the memory is full.
func TestMemoryFull(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"OOM command not allowed when used memory > 'maxmemory'. script: 6c0a5b0e, on @user_script:81.":                                               true, // 7.0
		"ERR Error running script (call to f_6c0a5b0e): @user_script:81: @user_script: 81: -OOM command not allowed when used memory > 'maxmemory'. ": true, // 6.2
		"ERR Error running script (call to f_6c0a5b0e): @user_script:81: @user_script: 81: -READONLY You can't write against a read only replica. ":   false,
		"LOADING Redis is loading the dataset in memory": false,
	} {
		if got := memoryFull(errors.New(text)); got != want {
			t.Errorf("%s: a full memory is %v, want %v", text, got, want)
		}
	}
	if memoryFull(nil) {
		t.Error("no error is a full memory")
	}
}
