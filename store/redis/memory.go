package redisstore

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A full memory (maxmemory, with noeviction) refuses batches. Nothing would be
// compacted then, as keys that are worth it come with the replies of batches; so the
// keys that a refused batch is about are read and compacted instead. That makes room
// by what they hold twice or no longer need, and the batch is tried again.

// memoryFull says whether a server refuses to write because its memory is full.
func memoryFull(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "OOM ") }

// relieved is how many keys are read at most for a batch that was refused, and
// worthRelief how long one must be.
const (
	relieved    = 1000
	worthRelief = 32
)

// relieve has the keys of calls compacted that a full memory has refused.
func (w *writer) relieve(ctx context.Context) {
	var shards []int
	var keys []any
	for _, c := range w.refused {
		for _, key := range c.keys[:min(len(c.keys), relieved-len(keys))] {
			shards, keys = append(shards, c.shard), append(keys, key)
		}
	}
	w.refused = w.refused[:0]
	held, commands := make([]*redis.StringCmd, len(keys)), make([]redis.Cmder, len(keys))
	for i, key := range keys {
		held[i] = redis.NewStringCmd(ctx, "get", key)
		commands[i] = held[i]
	}
	w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return shards[i] })
	for i, key := range keys {
		// Where it cannot be read, it is tried again with the batch.
		if text := held[i].Val(); len(text) >= worthRelief {
			w.grown(shards[i], key, text)
		}
	}
}
