package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// A key takes no more memory than its content after it was appended to, and keeps its time to live. Replicas get the
// appends alone.
func TestKeysAreTrimmed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.New(t, redistest.Options{})
	client, replica := server.Client(t), redistest.NewReplica(t, server.Addr()).Client(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	w := s.newWriter()
	for offset := range int64(3) { // too few for a compaction
		b := begin(t, s, transactions)
		at := 101*day + offset*(busyFor+1)
		fill(b, 0, event{offset: offset, device: "d1", user: fmt.Sprint("a user with a long name ", offset), time: at, cents: 5})
		apply(t, w, b)
	}
	key, copied := s.tags[0]+"devic:d1", s.tags[0]+"devic:d2"
	if length := client.StrLen(ctx, key).Val(); length < 256 {
		t.Fatalf("the key has %d bytes, too few to be trimmed", length)
	}
	if ttl := client.TTL(ctx, key).Val(); ttl < 9*24*time.Hour {
		t.Errorf("the key expires in %v, want more than 9 days", ttl)
	}
	// A copy has no room either.
	if done, err := client.Copy(ctx, key, copied, 0, false).Result(); err != nil || done != 1 {
		t.Fatalf("copy the key: %d, error %v", done, err)
	}
	if got, want := client.MemoryUsage(ctx, key).Val(), client.MemoryUsage(ctx, copied).Val(); got != want {
		t.Errorf("the key takes %d bytes, and a copy of it %d", got, want)
	}

	want := client.Get(ctx, key).Val()
	testkit.Eventually(t, time.Minute, "the appends at the replica", func() (bool, string) {
		got := replica.Get(ctx, key).Val()
		return got == want, fmt.Sprintf("it has %d bytes of %d", len(got), len(want))
	})
	stats := replica.Info(ctx, "commandstats").Val()
	if !strings.Contains(stats, "cmdstat_append:calls=5,") || !strings.Contains(stats, "cmdstat_set:calls=1,") {
		t.Errorf("want the replica to get 1 SET, which creates the key, and 5 APPENDs, 3 of them to the key of the lifetime; its calls are\n%s", stats)
	}
}

// A key that soon gets the next append keeps the room for it.
func TestBusyKeysAreNotTrimmed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.New(t, redistest.Options{}).Client(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	w := s.newWriter()
	for offset := range int64(3) { // too few for a compaction
		b := begin(t, s, transactions)
		at := 101*day + offset*busyFor
		fill(b, 0, event{offset: offset, device: "d1", user: fmt.Sprint("a user with a long name ", offset), time: at, cents: 5})
		apply(t, w, b)
	}
	key := s.tags[0] + "devic:d1"
	stats := client.Info(ctx, "commandstats").Val()
	if !strings.Contains(stats, "cmdstat_append:calls=5,") || !strings.Contains(stats, "cmdstat_set:calls=1,") {
		t.Errorf("want 1 SET, which creates the key, and 5 APPENDs; the calls are\n%s", stats)
	}
	if held, length := client.MemoryUsage(ctx, key).Val(), client.StrLen(ctx, key).Val(); held < length*3/2 {
		t.Errorf("the key takes %d bytes for %d, without room for as much again", held, length)
	}
}

// A busy key that something deletes gets its time to live again.
func TestBusyKeysKeepTheirTimesToLive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := redistest.New(t, redistest.Options{}).Client(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	w, key := s.newWriter(), s.tags[0]+"devic:d1"
	for offset := range int64(2) {
		client.Del(ctx, key)
		b := begin(t, s, transactions)
		fill(b, 0, event{offset: offset, device: "d1", user: "u1", time: 101*day + offset, cents: 5})
		apply(t, w, b)
		if ttl := client.TTL(ctx, key).Val(); ttl < 9*24*time.Hour {
			t.Errorf("after append %d the key expires in %v, want more than 9 days", offset, ttl)
		}
	}
}
