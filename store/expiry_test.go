package store

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/internal/testkit"
)

const hour = int64(3600_000)

// kept is how long the keys of these tests are kept, in milliseconds, and givenTo
// the time to live that they are given, in seconds.
const kept, givenTo = 8 * hour, 9*3600 + slack

func TestTimesToLiveAreRenewedAfterAnEighthOfThem(t *testing.T) {
	e := newExpiry()
	const first = int64(1_700_000_000_000)
	for _, step := range []struct {
		name      string
		key       uint64
		kept, now int64
		want      int64
	}{
		{"the first time", 1, kept, first, givenTo},
		{"at once", 1, kept, first, 0},
		{"a millisecond too early", 1, kept, first + hour - 1, 0},
		{"in time", 1, kept, first + hour, givenTo},
		{"at once again", 1, kept, first + 2*hour - 1, 0},
		{"another key", 2, kept, first + 2*hour - 1, givenTo},
		{"the first one again", 1, kept, first + 2*hour, givenTo},
		{"the clock was set back", 1, kept, first + hour, givenTo},
		{"and goes on", 1, kept, first + 2*hour - 1, 0},
		{"kept for ever", 3, 0, first, 0},
		{"a hash of nothing", 0, kept, first, givenTo},
	} {
		if got := e.due(step.key, step.kept, step.now); got != step.want {
			t.Errorf("%s: to live for %d s, want %d", step.name, got, step.want)
		}
	}
}

// What is known of keys is bounded: two places that are beside each other have
// the two keys given their time last.
func TestTimesToLiveAreForgottenInTheEnd(t *testing.T) {
	e := newExpiry()
	const first, round = int64(1_700_000_000_000), uint64(expiryPlaces)
	for n, step := range []struct {
		key  uint64
		want int64
	}{
		{5, givenTo}, {5 + round, givenTo}, {5, 0}, {5 + round, 0},
		{4, givenTo}, {4, 0}, {5 + round, 0}, // the time of 5 was longest ago
		{5, givenTo}, {5, 0}, {4, 0},
		{5 + round, givenTo}, {6, givenTo}, {7, givenTo},
	} {
		if got := e.due(step.key, kept, first+int64(n)); got != step.want {
			t.Errorf("step %d, key %d: to live for %d s, want %d", n, step.key, got, step.want)
		}
	}
}

// A key that several writers find due at once is due for one of them or more, and
// no key is taken for another.
func TestTimesToLiveAreShared(t *testing.T) {
	e := newExpiry()
	const writers, keys, places = 4, 64, 4 // many keys for few places
	var group sync.WaitGroup
	var given [keys]atomic.Int64
	for writer := range writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(writer), 0))
			for n := range 20_000 {
				key := random.Uint64N(keys)
				if e.due(key/places*expiryPlaces+key%places, kept, int64(1_700_000_000_000+n)) > 0 {
					given[key].Add(1)
				}
			}
		})
	}
	group.Wait()
	for key := range given {
		if given[key].Load() == 0 {
			t.Errorf("key %d was never given a time to live", key)
		}
	}
}

// A call that failed may have given no key its time.
func TestTimesToLiveAreGivenAgainAfterAFailure(t *testing.T) {
	server := testkit.NewRedis(t, testkit.RedisOptions{})
	link := testkit.Proxy(t, server.Addr())
	client := redis.NewClient(&redis.Options{Addr: link.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, s := t.Context(), New(client, testkit.Namespace(t), 1)
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
	start(t, s, transactions)
	w, b := s.NewWriter(), begin(t, s, transactions)
	fill(b, 0, event{device: "d1", user: "u1", time: 100 * day, cents: 5})
	link.Cut()
	if err := w.Apply(ctx, b); err == nil {
		t.Fatal("a batch was applied over a line that is cut")
	}
	link.Heal()
	apply(t, w, b)
	key := string(appendStateKey(nil, s.tags[0], events.Group, []byte("d1")))
	if ttl := s.redis.TTL(ctx, key).Val(); ttl < 9*24*time.Hour {
		t.Errorf("the key expires after %v", ttl)
	}
}

// A store that went back in time may have older times to live: keys are given
// new ones, however lately that was done.
func TestTimesToLiveAreGivenAgainAfterTheStoreWentBack(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		w := s.NewWriter()
		key := string(appendStateKey(nil, s.tags[0], events.Group, []byte("d1")))
		write := func(offset int64) *kinds.Batch {
			b := begin(t, s, transactions)
			fill(b, 0, event{offset: offset, device: "d1", user: "u1", time: 100 * day, cents: 5})
			return b
		}
		apply(t, w, write(0))
		s.redis.Expire(ctx, key, time.Minute)
		apply(t, w, write(1))
		if ttl := s.redis.TTL(ctx, key).Val(); ttl > time.Minute {
			t.Fatalf("given a time to live again at once: %v", ttl)
		}
		ahead := write(3)
		ahead.Sources[0].Progress = slices.Clone(ahead.Sources[0].Progress)
		ahead.Sources[0].Progress[0] = 3 // which the store does not have
		apply(t, w, ahead)
		if !ahead.Sources[0].Behind {
			t.Fatal("the store was not found to have gone back")
		}
		apply(t, w, write(2))
		if ttl := s.redis.TTL(ctx, key).Val(); ttl < 9*24*time.Hour {
			t.Errorf("the key expires after %v, as it was in the older copy", ttl)
		}
	})
}
