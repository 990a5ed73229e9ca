// Package inspector reads single keys of a namespace, and drops damaged state. It is for operators;
// events and questions do not use it.
package inspector

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed inspect.lua
var inspectLua string

// origin is what a key had when it was inspected.
type origin struct {
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
func (s *Inspector) Inspect(ctx context.Context, series *state.Series, entity string) (packed.Held, error) {
	var o origin
	h := packed.Held{Shard: s.hashing.Shard([]byte(entity), state.EntityHash([]byte(entity)), len(s.tags))}
	h.Key = string(s.hashing.AppendKey(nil, s.tags[h.Shard], series.Group, []byte(entity)))
	keys := []string{h.Key}
	if series.Parent != "" {
		parent, _ := state.SplitParent([]byte(entity))
		h.Parent = string(s.hashing.AppendKey(nil, s.tags[h.Shard], series.Parent, parent))
		o.tag, o.child = state.EmbeddingTag(series.Group), s.hashing.AppendChild(nil, []byte(entity))
		keys = append(keys, h.Parent)
	}
	// At one moment: a child that spilled between two commands would be in both replies or in none.
	held, err := s.redis.Eval(ctx, inspectLua, keys).Slice()
	if err != nil {
		return h, fmt.Errorf("read key %q: %w", h.Key, err)
	}
	for i := range keys {
		of, _ := held[i].([]any)
		kind, _ := of[0].(string)
		content, isString := of[1].(string)
		lives, _ := of[2].(int64)
		switch {
		case kind == "none":
			continue
		case !isString && i > 0:
			h.ParentDamage = keyspace.ErrForeign
		case !isString:
			h.Type = kind
		}
		var value []byte
		if isString {
			value = []byte(content)
		}
		o.take(&h, i, value, time.Duration(max(0, min(lives, math.MaxInt64/int64(time.Millisecond))))*time.Millisecond)
	}
	h.Origin = o
	return h, nil
}

// take takes the content of a key: the entity's own, or that of its parent.
func (o *origin) take(h *packed.Held, i int, value []byte, lives time.Duration) {
	if i == 0 {
		o.own, h.Packed, h.TimeToLive = value, value, lives
		return
	}
	o.parent = value
	if h.ParentDamage == nil {
		var err error
		if h.Packed, h.ParentLosses, err = packed.WithEmbedded(o.own, value, o.tag, o.child); err != nil {
			h.Packed, h.ParentDamage = o.own, err
		}
	}
	if len(o.own) == 0 && len(h.Packed) > 0 {
		h.TimeToLive = lives
	}
}
