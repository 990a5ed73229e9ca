package inspector

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed drop.lua
var dropSource string

// ErrChanged says that a key is no longer what it was when it was inspected.
var ErrChanged = errors.New("the key has changed meanwhile; look again")

// Drop puts what can be kept of a key in the place of what was inspected, with a
// note of the loss by which answers know that they lack events: of records whose
// timestamps go up to the moment returned, in ms. The group keeps state for keep
// ms, 0 being for ever. The error is ErrChanged, or that of Redis; nothing is
// changed then.
func (s *Inspector) Drop(ctx context.Context, held Held, kept packed.Salvage, keep int64) (until int64, err error) {
	var nonce packed.Nonce
	_, _ = rand.Read(nonce[:]) // it never fails
	before, after := packed.PackLoss(kept.Kept, packed.Loss{Tags: kept.Tags}, nonce)
	own := proof(held.own)
	if held.Type != "" {
		own = held.Type
	}
	ttl := int64(0)
	if keep > 0 {
		ttl = keyspace.Lifetime(keep, s.slack)
	}
	keys := []string{keyspace.ProgressKey(s.tags[held.Shard]), held.Key}
	args := []any{own, before, after, packed.LossMoment, ttl}
	if len(held.parent) > 0 {
		left, err := packed.WithoutEmbedded(held.parent, held.tag, held.child, nonce)
		if err != nil {
			return 0, fmt.Errorf("drop what is damaged of key %q: %w", held.Key, keyspace.NewError(held.Parent, err))
		}
		keys, args = append(keys, held.Parent), append(args, proof(held.parent), left)
	}
	reply, err := redis.NewScript(dropSource).Run(ctx, s.redis, keys, args...).Text()
	if err != nil {
		return 0, fmt.Errorf("drop what is damaged of key %q: %w", held.Key, err)
	}
	if reply == "" {
		return 0, ErrChanged
	}
	return strconv.ParseInt(reply, 10, 64)
}

// proof is what the script knows a key again by: the SHA-1 of what it holds, or that it is not there.
func proof(held []byte) string {
	if held == nil {
		return "none"
	}
	sum := sha1.Sum(held)
	return hex.EncodeToString(sum[:])
}
