package redisstore

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

const hour = int64(3600_000)

// kept is how long the keys of these tests are kept, in milliseconds.
const kept = 8 * hour

func TestTimesToLiveAreRenewedAfterAnEighthOfThem(t *testing.T) {
	t.Parallel()
	e := &newExpiries(1)[0]
	const first = int64(1_700_000_000_000)
	for _, step := range []struct {
		name      string
		key       uint64
		kept, now int64
		want      bool
	}{
		{"the first time", 1, kept, first, true},
		{"at once", 1, kept, first, false},
		{"a second too early", 1, kept, first + hour - 2000, false},
		{"in time", 1, kept, first + hour, true},
		{"at once again", 1, kept, first + 2*hour - 2000, false},
		{"another key", 2, kept, first + 2*hour - 2000, true},
		{"the first one again", 1, kept, first + 2*hour, true},
		{"the clock was set back", 1, kept, first + hour, true},
		{"and goes on", 1, kept, first + 2*hour - 2000, false},
		{"kept for less than a second", 3, 7_000, first, true},
		{"at once", 3, 7_000, first, true},
		{"a hash of nothing", 0, kept, first, true},
	} {
		if got, _ := e.append(step.key, step.kept, step.now, step.now); got != step.want {
			t.Errorf("%s: due for a time to live: %v, want %v", step.name, got, step.want)
		}
	}
}

// A key is busy if two batches append to it within two seconds of the records' time, whatever the clock says.
func TestBusyKeysAreKnownByTheTimeOfRecords(t *testing.T) {
	t.Parallel()
	e := &newExpiries(1)[0]
	const now, first = int64(1_800_000_000_000), int64(1_700_000_000_000)
	for _, step := range []struct {
		name       string
		recordTime int64
		want       bool
	}{
		{"the first time", first, false},
		{"in the same batch", first, false},
		{"a millisecond later", first + 1, true},
		{"two seconds later", first + 2001, true},
		{"more than two seconds later", first + 4002, false},
		{"another partition, two seconds before", first + 2002, true},
		{"an older copy of the log", first, false},
		{"records without a time", state.MinTime, false},
		{"and later ones", first + 5000, false},
	} {
		if _, got := e.append(1, kept, now, step.recordTime); got != step.want {
			t.Errorf("%s: busy: %v, want %v", step.name, got, step.want)
		}
	}
}

// The memory for keys is bounded: two neighbouring entries hold the two keys that were given their
// time last.
func TestRememberedTimesToLiveAreBounded(t *testing.T) {
	t.Parallel()
	e := &newExpiries(expiryEntries / 2)[0] // with two entries
	if n := len(e.entries); n != 2 {
		t.Fatalf("%d entries, want 2", n)
	}
	const first = int64(1_700_000_000_000)
	for n, step := range []struct {
		key  uint64
		want bool
	}{
		{5, true}, {6, true}, {5, false}, {6, false},
		{4, true}, {4, false}, {6, false}, // 5 has the oldest time
		{5, true}, {5, false}, {4, false},
	} {
		now := first + int64(n)*1000
		if got, _ := e.append(step.key, kept, now, now); got != step.want {
			t.Errorf("step %d, key %d: due for a time to live: %v, want %v", n, step.key, got, step.want)
		}
	}
}

// Forgetting makes all keys due, in constant time.
func TestTimesToLiveAreForgottenAtOnce(t *testing.T) {
	t.Parallel()
	e := &newExpiries(1)[0]
	const now, keys = int64(1_700_000_000_000), 10_000
	var before []expiryEntry
	for round := range 3 {
		given, again := 0, 0
		for key := range uint64(keys) {
			if due, _ := e.append(key*0x9e3779b97f4a7c15, kept, now, now); due {
				given++
			}
		}
		for key := range uint64(keys) {
			if due, _ := e.append(key*0x9e3779b97f4a7c15, kept, now, now); due {
				again++
			}
		}
		// A few keys share two entries with others.
		if given != keys || again > keys/20 {
			t.Errorf("round %d: %d of %d keys were due, %d again", round, given, keys, again)
		}
		before = append(before[:0], e.entries...)
		if e.forget(); !slices.Equal(e.entries, before) {
			t.Fatal("forgetting visited all entries")
		}
	}
}

// Most keys of a shard find an entry, although the part of an entity's hash that determines its
// shard is the same for all.
func TestKeysOfAShardSpreadOverItsEntries(t *testing.T) {
	t.Parallel()
	const shards = 64
	e := &newExpiries(shards)[7]
	keys := len(e.entries) / 4
	again := 0
	for range 2 {
		again = 0
		for n := range keys {
			hash := state.EntityHash(strconv.AppendInt(nil, int64(n), 10))
			if due, _ := e.append(hash-hash%shards+7, kept, 1_700_000_000_000, 0); due {
				again++
			}
		}
	}
	if again > keys/10 {
		t.Errorf("%d of %d keys lost their entries, want at most a tenth", again, keys)
	}
}

func BenchmarkTimesToLive(b *testing.B) {
	all := newExpiries(64)
	const keys = 100_000
	b.Run("append", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for n := uint64(0); pb.Next(); n++ {
				hash := n % keys * 0x9e3779b97f4a7c15
				e := &all[hash%64]
				e.Lock()
				e.append(hash, kept, 1_700_000_000_000, 1_700_000_000_000)
				e.Unlock()
			}
		})
	})
	b.Run("map", func(b *testing.B) { // the simple alternative: every key ever written, which grows without bound
		type table struct {
			sync.Mutex
			given map[uint64]int64
		}
		tables := make([]table, len(all))
		for i := range tables {
			tables[i].given = make(map[uint64]int64)
		}
		b.RunParallel(func(pb *testing.PB) {
			for n := uint64(0); pb.Next(); n++ {
				hash := n % keys * 0x9e3779b97f4a7c15
				t := &tables[hash%64]
				t.Lock()
				if now := int64(1_700_000_000_000); now-t.given[hash] > kept/8 {
					t.given[hash] = now
				}
				t.Unlock()
			}
		})
	})
	b.Run("forget", func(b *testing.B) {
		for b.Loop() {
			all[0].forget()
		}
	})
}

// A call that failed may have set no times to live.
func TestTimesToLiveAreSetAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, server.Addr())
	client := redis.NewClient(&redis.Options{Addr: link.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, s := t.Context(), New(client, testkit.Namespace(t), 1)
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
	start(t, s, transactions)
	w, b := s.newWriter(), begin(t, s, transactions)
	fill(b, 0, event{device: "d1", user: "u1", time: 100 * day, cents: 5})
	link.Cut()
	if err := w.Apply(ctx, b); err == nil {
		t.Fatal("a batch was applied over a connection that is cut")
	}
	link.Heal()
	untilServed(t, s)
	apply(t, w, b)
	key := string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1")))
	if ttl := s.redis.TTL(ctx, key).Val(); ttl < 9*24*time.Hour {
		t.Errorf("the key expires after %v", ttl)
	}
}

// A store that went back in time may have older times to live: keys are given new ones, even if they were set recently.
func TestTimesToLiveAreSetAgainAfterTheStoreWentBack(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		w := s.newWriter()
		key := string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1")))
		write := func(offset int64) *state.Batch {
			b := begin(t, s, transactions)
			fill(b, 0, event{offset: offset, device: "d1", user: "u1", time: 100 * day, cents: 5})
			return b
		}
		apply(t, w, write(0))
		s.redis.Expire(ctx, key, time.Minute)
		apply(t, w, write(1))
		if ttl := s.redis.TTL(ctx, key).Val(); ttl > time.Minute {
			t.Fatalf("the key was given a new time to live at once: %v", ttl)
		}
		ahead := write(3)
		ahead.Ranges[0].Progress = slices.Clone(ahead.Ranges[0].Progress)
		ahead.Ranges[0].Progress[0].Offset = 3 // beyond the store's progress
		apply(t, w, ahead)
		if !ahead.Ranges[0].Behind {
			t.Fatal("the store went back in time, which was not detected")
		}
		apply(t, w, write(2))
		if ttl := s.redis.TTL(ctx, key).Val(); ttl < 9*24*time.Hour {
			t.Errorf("the key expires after %v, as it was in the older copy", ttl)
		}
	})
}
