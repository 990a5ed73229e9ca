package redisstore

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// wantTimesToLive fails unless there are n state keys in a namespace, all with a time to live.
func wantTimesToLive(t *testing.T, s *Store, n int) {
	t.Helper()
	var mu sync.Mutex
	found := 0
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, "{"+s.namespace+":*", 1000).Iterator()
		for keys.Next(ctx) {
			key := keys.Val()
			if strings.HasSuffix(key, "}progress") {
				continue
			}
			lives, err := c.PTTL(ctx, key).Result()
			if err != nil {
				return err
			}
			mu.Lock()
			if found++; lives <= 8*24*time.Hour {
				t.Errorf("%s expires after %v, want more than 8 days", key, lives)
			}
			mu.Unlock()
		}
		return keys.Err()
	}
	err := error(nil)
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(context.Background(), s.redis)
	}
	if err != nil || found != n {
		t.Fatalf("%d keys hold state, want %d; %v", found, n, err)
	}
}

// countOf is a batch of counted events, one for each device, from an offset on.
func countOf(t *testing.T, s *Store, from int64, now int64, devices ...string) *state.Batch {
	b := begin(t, s, transactions)
	b.Series, b.Now = allSeries, now
	for i := range b.Ranges[0].Progress {
		b.Ranges[0].Progress[i].Offset = from
	}
	for i, device := range devices {
		b.Update(0, from+int64(i), []byte(device))
		b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	}
	b.Ranges[0].To = from + int64(len(devices))
	return b
}

// Every key that can expire has a time to live when two owners of a partition overlap: a call that
// was refused, because the other owner was faster, has set none.
func TestKeysExpireAfterOwnersOverlap(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		other := New(s.redis, s.namespace, 1)
		slow := countOf(t, s, 0, 100*day, "d1", "d2")
		apply(t, other.newWriter(), countOf(t, other, 0, 100*day, "d1"))
		apply(t, s.newWriter(), slow)
		wantTimesToLive(t, s, 2)
	})
}

// Every key that can expire has a time to live also after a compaction that left nothing of it.
func TestEmptiedKeysExpire(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w, emptied := s.newWriter(), false
		for i := range int64(200) {
			apply(t, w, countOf(t, s, i, 300*day, "d1"))
			windowStates, err := s.Read(context.Background(), []state.Read{{Series: events, Entity: "d1", First: 100, Last: 100}})
			if err != nil {
				t.Fatal(err)
			}
			emptied = emptied || i > 0 && (len(windowStates[0].Buckets) == 0 || windowStates[0].Buckets[0].Value.Num < i)
			wantTimesToLive(t, s, 1)
		}
		if !emptied {
			t.Error("no compaction has emptied the key")
		}
	})
}

// A key that was deleted from outside, and is written again before it is due, has a time to live from the first write
// on. A key that is kept forever has none.
func TestRewrittenKeysExpire(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		w := s.newWriter()
		write := func(from int64) {
			b := countOf(t, s, from, 100*day, "d1", "d2")
			b.Update(0, from, []byte("d1"))
			b.Add(state.Mutation{Series: ever, Num: 1})
			apply(t, w, b)
		}
		write(0)
		for _, device := range []string{"d1", "d2"} {
			if err := s.redis.Del(ctx, string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte(device)))).Err(); err != nil {
				t.Fatal(err)
			}
		}
		write(2)
		for _, device := range []string{"d1", "d2"} {
			key := string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte(device)))
			if lives, want := s.redis.TTL(ctx, key).Val(), time.Duration(keyspace.Lifetime(9*day, s.slack))*time.Second; lives > want || lives < want-time.Minute {
				t.Errorf("%s expires after %v, want %v", key, lives, want)
			}
		}
		key := string(keyspace.AppendKey(nil, s.tags[0], ever.Group, []byte("d1")))
		if lives := s.redis.TTL(ctx, key).Val(); lives != -1 {
			t.Errorf("a key that is kept forever expires after %v", lives)
		}
	})
}

// A new key and its time to live are one command in the append-only file.
func TestNewKeyIsOneCommand(t *testing.T) {
	t.Parallel()
	client := redistest.New(t, redistest.Options{}).Client(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	apply(t, s.newWriter(), countOf(t, s, 0, 100*day, "d1", "d2"))
	wantTimesToLive(t, s, 2)
	stats := client.InfoMap(t.Context(), "commandstats").Val()["Commandstats"]
	for _, command := range []string{"append", "expire"} {
		if found := stats["cmdstat_"+command]; found != "" {
			t.Errorf("%s was called for a new key: %s", command, found)
		}
	}
}
