package inspector

import (
	"context"
	"fmt"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed refill.lua
var refillSource string

// Refill is the state to restore in a key that was dropped, and in the keys of its entity's children.
type Refill struct {
	Dropped  packed.Loss // as in the key; its mark identifies this refill
	Sections []byte      // the entity's state from the records up to the loss
	Lost     packed.Losses
	Children []RefilledChild
}

// RefilledChild is the state of a child from the records up to the loss.
type RefilledChild struct {
	Group, Entity string
	Keep          int64 // as of Drop
	Sections      []byte
}

// childrenAtOnce and bytesAtOnce bound the children that one script call writes.
const (
	childrenAtOnce = 500
	bytesAtOnce    = 1 << 20
)

// Refill restores what was dropped from a key, before everything that was applied since. Until it is complete, the key
// keeps its loss. It fails with ErrChanged if the key or its embedded state was dropped again, or its children were
// spilled: the refill must start over. After an error of Redis the same call may be repeated.
func (s *Inspector) Refill(ctx context.Context, held packed.Held, r Refill) error {
	loss := packed.AppendLoss(nil, r.Dropped)
	keys, args := []string{keyspace.ProgressKey(s.tags[held.Shard]), held.Key}, []any{loss, packed.HeaderSize, ""}
	size := 0
	for _, c := range r.Children {
		if len(keys)-2 >= childrenAtOnce || size > bytesAtOnce {
			if err := s.refill(ctx, keys, args); err != nil {
				return err
			}
			keys, args, size = keys[:2], args[:3], 0
		}
		keys = append(keys, string(s.hashing.AppendKey(nil, s.tags[held.Shard], c.Group, []byte(c.Entity))))
		args = append(args, packed.Refilled(c.Sections, nil, newNonce()), s.lifetime(c.Keep))
		size += len(c.Sections)
	}
	args[2] = packed.Refilled(r.Sections, r.Lost, newNonce())
	return s.refill(ctx, keys, args)
}

func (s *Inspector) refill(ctx context.Context, keys []string, args []any) error {
	done, err := redis.NewScript(refillSource).Run(ctx, s.redis, keys, args...).Bool()
	switch {
	case err != nil:
		return fmt.Errorf("refill key %q: %w", keys[1], err)
	case !done:
		return ErrChanged
	}
	return nil
}
