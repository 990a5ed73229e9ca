package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// age deletes the keys of Weir that would have expired by now, had the events
// been applied as they happened. Keys live for a time from when they were last
// added to, and in a month that is loaded within seconds none gets to its end.
// factor is how many times faster than they happened the events were applied,
// and ended when the last one was.
func age(b *testing.B, client *redis.Client, factor float64, ended time.Time) {
	type expiry struct {
		key string
		at  time.Time
	}
	kinds := map[string][]expiry{} // by what all keys of one time to live have in common
	var cursor uint64
	for first := true; first || cursor != 0; first = false {
		keys, next, err := client.Scan(b.Context(), cursor, "*", 1000).Result()
		if err != nil {
			b.Fatal(err)
		}
		cursor = next
		remaining, now := timesToLive(b, client, keys), time.Now()
		for i, key := range keys {
			_, name, _ := strings.Cut(key, "}")
			kind, _, of := strings.Cut(name, ":")
			if of && remaining[i] > 0 {
				kinds[kind] = append(kinds[kind], expiry{key, now.Add(remaining[i])})
			}
		}
	}
	for _, expiries := range kinds {
		last := expiries[0].at
		for _, e := range expiries {
			if e.at.After(last) {
				last = e.at
			}
		}
		live := last.Sub(ended) // the latest were written at the end
		var dead []string
		for _, e := range expiries {
			if last.Sub(e.at).Seconds()*factor > live.Seconds() {
				dead = append(dead, e.key)
			}
		}
		for len(dead) > 0 {
			n := min(len(dead), 1000)
			if err := client.Del(b.Context(), dead[:n]...).Err(); err != nil {
				b.Fatal(err)
			}
			dead = dead[n:]
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
