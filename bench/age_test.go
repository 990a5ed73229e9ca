package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// age deletes the keys of Weir that would have expired by now if the events had been applied as they happened: those of
// entities whose last event is older than the time to live of that kind of key. A month that is loaded within seconds
// expires none.
func age(b *testing.B, client *redis.Client, last entities, now time.Time) {
	type stateKey struct{ key, entity string }
	kinds := map[string][]stateKey{} // keys with the same time to live, by kind
	lives := map[string]time.Duration{}
	var cursor uint64
	for first := true; first || cursor != 0; first = false {
		keys, next, err := client.Scan(b.Context(), cursor, "*", 1000).Result()
		if err != nil {
			b.Fatal(err)
		}
		cursor = next
		remaining := timesToLive(b, client, keys)
		for i, key := range keys {
			_, name, _ := strings.Cut(key, "}")
			kind, entity, of := strings.Cut(name, ":")
			if !of || remaining[i] <= 0 {
				continue
			}
			if last[entity].IsZero() {
				b.Fatalf("the key %s belongs to no entity of the events", key)
			}
			kinds[kind] = append(kinds[kind], stateKey{key, entity})
			lives[kind] = max(lives[kind], remaining[i])
		}
	}
	for kind, keys := range kinds {
		var expired []string
		for _, k := range keys {
			if last[k.entity].Add(lives[kind]).Before(now) {
				expired = append(expired, k.key)
			}
		}
		for len(expired) > 0 {
			n := min(len(expired), 1000)
			if err := client.Del(b.Context(), expired[:n]...).Err(); err != nil {
				b.Fatal(err)
			}
			expired = expired[n:]
		}
	}
}

func timesToLive(b *testing.B, client *redis.Client, keys []string) (list []time.Duration) {
	replies, err := client.Pipelined(b.Context(), func(pipe redis.Pipeliner) error {
		for _, key := range keys {
			pipe.PTTL(b.Context(), key)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, reply := range replies {
		list = append(list, reply.(*redis.DurationCmd).Val())
	}
	return list
}
