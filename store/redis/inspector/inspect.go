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
	"github.com/weir-stream/weir/state/packed"
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
	// Parent is the key of the entity's parent, where some of what is Packed is embedded. Empty
	// where the entity has none.
	Parent string
	// ParentDamage is why it cannot be told what is embedded there, nil where it can.
	ParentDamage error

	own, parent []byte // what the keys hold
	tag         uint32 // under which the entity is embedded
	child       []byte // its name there
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

// Inspect reads what the group of a series holds of an entity, as it stands. It writes nothing.
func (s *Inspector) Inspect(ctx context.Context, series *state.Series, entity string) (Held, error) {
	h := Held{Shard: state.Shard(state.EntityHash([]byte(entity)), len(s.tags))}
	h.Key = string(s.hashing.AppendKey(nil, s.tags[h.Shard], series.Group, []byte(entity)))
	keys := []string{h.Key}
	if series.Parent != "" {
		parent, _ := state.SplitParent([]byte(entity))
		h.Parent = string(s.hashing.AppendKey(nil, s.tags[h.Shard], series.Parent, parent))
		h.tag, h.child = state.EmbeddingTag(series.Group), s.hashing.AppendChild(nil, []byte(entity))
		keys = append(keys, h.Parent)
	}
	// In one transaction: what is spilled between two commands would be in both or in none.
	pipe := s.redis.TxPipeline()
	values, lives := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		values[i], lives[i] = pipe.Get(ctx, key), pipe.PTTL(ctx, key)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, key := range keys {
		value, err := values[i].Bytes()
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case keyspace.Foreign(err) && i > 0:
			h.ParentDamage, err = keyspace.ErrForeign, nil
		case keyspace.Foreign(err):
			h.Type, err = s.redis.Type(ctx, key).Result()
		}
		if err = errors.Join(err, lives[i].Err()); err != nil {
			return h, fmt.Errorf("read key %q: %w", key, err)
		}
		h.take(i, value, max(0, lives[i].Val()))
	}
	return h, nil
}

// take takes what a key holds: the entity's own, or that of its parent.
func (h *Held) take(i int, value []byte, lives time.Duration) {
	if i == 0 {
		h.own, h.Packed, h.TimeToLive = value, value, lives
		return
	}
	h.parent = value
	if h.ParentDamage == nil {
		var err error
		if h.Packed, _, err = packed.WithEmbedded(h.own, value, h.tag, h.child); err != nil {
			h.Packed, h.ParentDamage = h.own, err
		}
	}
	if len(h.own) == 0 && len(h.Packed) > 0 {
		h.TimeToLive = lives
	}
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
