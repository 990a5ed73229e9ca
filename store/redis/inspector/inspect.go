// Package inspector looks at the keys of a namespace one by one, and drops what is damaged of them. Operators do; no event
// and no question comes this way.
package inspector

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Held is what Redis holds of an entity in one group of series.
type Held struct {
	Shard  int
	Key    string
	Packed []byte // see package state; nil where there is nothing
	// TimeToLive is how long it is kept yet, 0 for ever.
	TimeToLive time.Duration
	// Type is that of the value in Redis, where it is no string and so no state:
	// something else has written it. Empty else.
	Type string
}

// Inspector looks at the keys of a namespace. It is safe for concurrent use.
type Inspector struct {
	redis     redis.UniversalClient
	namespace string
	tags      []string          // by shard
	hashing   *keyspace.Hashing // nil where keys have the entities themselves
	slack     time.Duration
}

// New looks at a namespace, whose keys live for slack longer than what they hold is kept.
func New(client redis.UniversalClient, namespace string, tags []string, hashing *keyspace.Hashing, slack time.Duration) *Inspector {
	return &Inspector{redis: client, namespace: namespace, tags: tags, hashing: hashing, slack: slack}
}

// Inspect reads what a group holds of an entity, as it stands. It writes nothing.
func (s *Inspector) Inspect(ctx context.Context, group, entity string) (Held, error) {
	h := Held{Shard: state.Shard(state.EntityHash([]byte(entity)), len(s.tags))}
	h.Key = string(s.hashing.AppendKey(nil, s.tags[h.Shard], group, []byte(entity)))
	pipe := s.redis.Pipeline()
	packed, lives := pipe.Get(ctx, h.Key), pipe.PTTL(ctx, h.Key)
	_, _ = pipe.Exec(ctx) // each command has its own error
	var err error
	h.Packed, err = packed.Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return h, nil
	case keyspace.Foreign(err):
		h.Type, err = s.redis.Type(ctx, h.Key).Result()
	}
	if err = errors.Join(err, lives.Err()); err != nil {
		return h, fmt.Errorf("read key %q: %w", h.Key, err)
	}
	h.TimeToLive = max(0, lives.Val())
	return h, nil
}

// ShardProgress reads the next offsets that a shard applies, and the greatest
// timestamp of a record that it has applied, in milliseconds; 0 where none was.
func (s *Inspector) ShardProgress(ctx context.Context, shard int) (offsets map[state.Partition]int64, newest int64, err error) {
	key := keyspace.ProgressKey(s.tags[shard])
	fields, err := s.redis.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read %q: %w", key, err)
	}
	offsets = map[state.Partition]int64{}
	for field, text := range fields {
		topic, id, isPartition := strings.Cut(field, "/")
		partition, notNumber := strconv.ParseInt(id, 10, 32)
		if field == keyspace.ClockField {
			newest, _ = strconv.ParseInt(text, 10, 64) // 0 where another has written there
			continue
		}
		at, err := state.ParsePosition(text)
		if isPartition && notNumber == nil && err == nil && !strings.Contains(topic, ":") {
			topic, _, _ := strings.Cut(topic, "@") // the plan that has the partition
			offsets[state.Partition{Topic: topic, ID: int32(partition)}] = at.Offset
		}
	}
	return offsets, newest, nil
}
