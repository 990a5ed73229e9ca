package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/kinds"
)

// keptKey is the state key with that hash of a series that is kept for 8 hours.
func keptKey(hash uint64) *stateKey {
	return &stateKey{hash: hash, series: &kinds.Series{GroupKeep: 8 * time.Hour.Milliseconds()}}
}

// givenTo is the time to live that such a key is given, in seconds.
const givenTo = 9*3600 + slack

func TestTimesToLiveAreRenewedAfterAnEighthOfThem(t *testing.T) {
	clock := time.UnixMilli(1_700_000_000_000)
	e := expiry{now: func() time.Time { return clock }}
	const hour, first = int64(3600_000), int64(1_600_000_000_000)
	for _, step := range []struct {
		name   string
		passed time.Duration // by the clock
		record int64
		want   int64
	}{
		{"the first time", 0, first, givenTo},
		{"at once", 0, first, 0},
		{"a millisecond too early", time.Hour - time.Millisecond, first + hour - 1, 0},
		{"by the clock", time.Millisecond, first, givenTo},
		{"an older record", 0, first - 5*hour, 0},
		{"too early by the records", 0, first + hour - 1, 0},
		{"by the records", 0, first + hour, givenTo},
		{"at once again", time.Hour - time.Millisecond, first + 2*hour - 1, 0},
		{"by both", time.Millisecond, first + 2*hour, givenTo},
	} {
		clock = clock.Add(step.passed)
		if got := e.due(keptKey(1), step.record); got != step.want {
			t.Errorf("%s: to live for %d s, want %d", step.name, got, step.want)
		}
	}
	if got := e.due(keptKey(2), first); got != givenTo {
		t.Errorf("another key: to live for %d s, want %d", got, givenTo)
	}
	if got := e.due(&stateKey{series: &kinds.Series{}}, first); got != 0 {
		t.Errorf("what is kept for ever is to live for %d s", got)
	}
}

// What is known of keys is bounded: each has one place, which it may lose.
func TestTimesToLiveAreForgottenInTheEnd(t *testing.T) {
	clock := time.UnixMilli(1_700_000_000_000)
	e := expiry{now: func() time.Time { return clock }}
	for hash := range uint64(expiryPlaces + 1) {
		if e.due(keptKey(hash), 0) == 0 {
			t.Fatalf("key %d was not due the first time", hash)
		}
	}
	if known := len(e.given); known != expiryPlaces {
		t.Errorf("%d keys are known, want %d", known, expiryPlaces)
	}
	for _, step := range []struct {
		hash uint64
		want int64
	}{
		{expiryPlaces, 0}, {expiryPlaces - 1, 0}, {1, 0},
		{0, givenTo}, // its place was taken by another
		{expiryPlaces, givenTo},
	} {
		if got := e.due(keptKey(step.hash), 0); got != step.want {
			t.Errorf("key %d: to live for %d s, want %d", step.hash, got, step.want)
		}
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
