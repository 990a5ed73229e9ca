// Package inspector reads single keys of a namespace, and drops damaged state. It is for operators;
// events and questions do not use it.
package inspector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Held is the state of an entity in one group of series, as Redis holds it.
type Held struct {
	Shard  int
	Key    string
	Packed []byte // see package state; nil if there is none
	// TimeToLive is how much longer the key is kept; 0 means forever.
	TimeToLive time.Duration
	// Type is the type of the value in Redis if it is not a string: something other than Weir has written it. It is
	// empty for a string.
	Type string
	// Parent is the key of the entity's parent, in which some of Packed is embedded. Empty if the
	// entity has none.
	Parent string
	// ParentDamage is why the part embedded there is unknown, nil if it is known.
	ParentDamage error
	// ParentLosses are the losses of the parent that concern the entity.
	ParentLosses packed.Losses

	own, parent []byte // content of the keys
	tag         uint32 // the tag of the embedded entity
	child       []byte // its name in the parent
}

// Inspector reads the keys of a namespace. It is safe for concurrent use.
type Inspector struct {
	redis     redis.UniversalClient
	namespace string
	tags      []string          // by shard
	hashing   *keyspace.Hashing // nil if keys contain the entities themselves
	slack     time.Duration
}

// New inspects a namespace whose keys live for slack longer than their state is kept.
func New(client redis.UniversalClient, namespace string, tags []string, hashing *keyspace.Hashing, slack time.Duration) *Inspector {
	return &Inspector{redis: client, namespace: namespace, tags: tags, hashing: hashing, slack: slack}
}

// Inspect reads the state of an entity in the group of a series, unchanged. It writes nothing.
func (s *Inspector) Inspect(ctx context.Context, series *state.Series, entity string) (Held, error) {
	h := Held{Shard: s.hashing.Shard([]byte(entity), state.EntityHash([]byte(entity)), len(s.tags))}
	h.Key = string(s.hashing.AppendKey(nil, s.tags[h.Shard], series.Group, []byte(entity)))
	keys := []string{h.Key}
	if series.Parent != "" {
		parent, _ := state.SplitParent([]byte(entity))
		h.Parent = string(s.hashing.AppendKey(nil, s.tags[h.Shard], series.Parent, parent))
		h.tag, h.child = state.EmbeddingTag(series.Group), s.hashing.AppendChild(nil, []byte(entity))
		keys = append(keys, h.Parent)
	}
	// One transaction: a child that spilled between two commands would be in both replies or in none.
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

// take takes the content of a key: the entity's own, or that of its parent.
func (h *Held) take(i int, value []byte, lives time.Duration) {
	if i == 0 {
		h.own, h.Packed, h.TimeToLive = value, value, lives
		return
	}
	h.parent = value
	if h.ParentDamage == nil {
		var err error
		if h.Packed, h.ParentLosses, err = packed.WithEmbedded(h.own, value, h.tag, h.child); err != nil {
			h.Packed, h.ParentDamage = h.own, err
		}
	}
	if len(h.own) == 0 && len(h.Packed) > 0 {
		h.TimeToLive = lives
	}
}
