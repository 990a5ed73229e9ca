package tools

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
)

const (
	defaultKeys = 20
	maxKeys     = 100
	// patience is how long the store looks at keys; what is left of Limit is for servers that answer
	// slowly.
	patience = Limit - 2*time.Second
)

// GreatestKeys is the answer of GET /v1/greatest-keys.
type GreatestKeys struct {
	At     int64 `json:"at"`     // when the first key was looked at, in ms
	Looked int   `json:"looked"` // how many keys were looked at
	// Incomplete says why these were not all keys; empty if they were.
	Incomplete string        `json:"incomplete,omitempty"`
	Keys       []GreatestKey `json:"greatest_keys"` // longest first
}

// GreatestKey is a key of the store with the state of an entity.
type GreatestKey struct {
	Key string `json:"key"` // its whole name
	// Entity is whose state it is, by the fields that name it; nil where keys hold hashes, and if the
	// definitions no longer say.
	Entity   map[string]string `json:"entity,omitempty"`
	Bytes    int64             `json:"bytes"`
	Features []string          `json:"features"` // those with state in it, by name
	Shard    int               `json:"shard"`
	Server   string            `json:"server,omitempty"` // if there are several
}

// AnswerGreatestKeys answers GET /v1/greatest-keys.
func (t *Tools) AnswerGreatestKeys(_ http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	parameters, refusal := parametersOf(r.URL.RawQuery, "limit")
	if refusal != nil {
		return nil, refusal
	}
	most, refusal := limitOf(parameters, defaultKeys, maxKeys)
	switch {
	case refusal != nil:
		return nil, refusal
	case !t.walking.TryLock():
		return nil, reply.Errorf(reply.Overloaded, "keys are being looked at for another request; ask again in some seconds")
	}
	defer t.walking.Unlock()
	access.LogRead(t.Logger, r, slog.Int("limit", most))
	ctx, cancel := context.WithTimeout(r.Context(), Limit)
	defer cancel()
	answer := GreatestKeys{At: t.Now().UnixMilli(), Keys: []GreatestKey{}}
	found, err := t.LongestKeys(ctx, most, patience)
	if err != nil && r.Context().Err() != nil { // the store has not failed
		return nil, reply.HungUp()
	}
	if err != nil {
		answer.Incomplete = strings.ReplaceAll(err.Error(), "\n", "; ")
		t.Logger.Warn("keys cannot be read", "error", answer.Incomplete)
	} else if !found.All {
		answer.Incomplete = fmt.Sprintf("within %v there was time for some of the keys only", patience)
	}
	if err != nil && found.Looked == 0 {
		return nil, reply.Errorf(reply.StoreUnavailable, "the keys cannot be read: %s", answer.Incomplete)
	}
	answer.Looked = found.Looked
	registry := t.Registry()
	for _, k := range found.Keys {
		answer.Keys = append(answer.Keys, greatestKey(registry, k, found.Hashed))
	}
	return reply.AppendJSON(nil, answer), nil
}

// greatestKey describes a key in the terms of the definitions.
func greatestKey(registry *features.Registry, k state.LongKey, hashed bool) GreatestKey {
	by, names := registry.Held(k.Group)
	described := GreatestKey{Key: k.Key, Bytes: k.Bytes, Features: append([]string{}, names...), Shard: k.Shard, Server: k.Server}
	if values := state.SplitEntity(nil, k.Entity); !hashed && len(values) == len(by) {
		described.Entity = map[string]string{}
		for i, name := range by {
			described.Entity[name] = state.Unescape(values[i])
		}
	}
	return described
}
