package inspector

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed drop.lua
var dropLua string

// ErrChanged is returned if a key has changed since it was inspected.
var ErrChanged = errors.New("the key has changed meanwhile; look again")

// Drop replaces an inspected key with the sections that can be kept and a note of the loss, so that answers state that
// they lack events: those of records with timestamps up to Newest of the returned progress, which was read in the same
// step. Later events are appended after it. Drop sets the moment of the loss. The group keeps state for keep ms, 0 means
// forever; the key's time to live becomes no shorter. It fails with ErrChanged or an error of Redis; nothing is changed
// then.
func (s *Inspector) Drop(ctx context.Context, held packed.Held, kept []byte, loss packed.Loss, keep int64) (*progress.Record, error) {
	nonce := newNonce()
	before, after := packed.PackLoss(kept, loss, nonce)
	of := held.Origin.(origin)
	own := proof(of.own)
	if held.Type != "" {
		own = held.Type
	}
	keys := []string{keyspace.ProgressKey(s.tags[held.Shard]), held.Key}
	args := []any{own, before, after, packed.LossMoment, s.lifetime(keep)}
	if len(of.parent) > 0 {
		left, err := packed.WithoutEmbedded(of.parent, of.tag, of.child, nonce)
		if err != nil {
			return nil, fmt.Errorf("drop what is damaged of key %q: %w", held.Key, keyspace.NewError(held.Parent, err))
		}
		keys, args = append(keys, held.Parent), append(args, proof(of.parent), left)
	}
	reply, err := redis.NewScript(dropLua).Run(ctx, s.redis, keys, args...).Slice()
	if err != nil {
		return nil, fmt.Errorf("drop what is damaged of key %q: %w", held.Key, err)
	}
	if len(reply) < 2 {
		return nil, ErrChanged
	}
	list, _ := reply[1].([]any)
	fields := map[string]string{}
	for ; len(list) > 1; list = list[2:] {
		name, _ := list[0].(string)
		fields[name], _ = list[1].(string)
	}
	return progress.Of(fields, 0)
}

func newNonce() (nonce packed.Nonce) {
	_, _ = rand.Read(nonce[:]) // it never fails
	return nonce
}

// lifetime returns the time to live, in seconds, of a key that is kept for `keep` milliseconds; 0 means forever.
func (s *Inspector) lifetime(keep int64) int64 {
	if keep == 0 {
		return 0
	}
	return keyspace.Lifetime(keep, s.slack)
}

// proof lets the script recognize the content of a key: its SHA-1, or that there is no key.
func proof(held []byte) string {
	if held == nil {
		return "none"
	}
	sum := sha1.Sum(held)
	return hex.EncodeToString(sum[:])
}
