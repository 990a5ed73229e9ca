// Package redisstore is the store that keeps state in Redis; nothing else knows Redis.
// Its name differs from its folder's because who uses it often uses the client too.
//
// Everything that a group of series holds of an entity stands packed in one
// string; see package state. It is written by appending and read whole. When it
// has grown it is compacted, which changes no answer.
//
// State is spread over a fixed number of shards by the hash of the entity. One
// script call applies one batch's operations of one shard and moves, in the
// same step, the shard's progress: for each partition the next offset to
// apply. What was applied and how far are therefore never apart, whatever is
// killed, resent, failed over or restored; see writer.Apply.
//
// Reading takes one pipeline and never writes.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// format is the version of the layout of keys and values, and formatField where it
// stands in the layout.
const (
	format      = 5
	formatField = "format"
)

//go:embed grown.lua
var grownSource string

//go:embed apply.lua
var applyBody string

//go:embed compact.lua
var compactBody string

var applySource, compactSource = grownSource + applyBody, grownSource + compactBody

var _ store.Store = (*Store)(nil)

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	*inspector.Inspector
	redis      redis.UniversalClient
	namespace  string
	tags       []string // by shard
	apply      *redis.Script
	compact    *redis.Script
	masters    *masters
	replicas   *replicas // nil where all is read from masters
	plans      planCache
	past       past
	registered registrations
	fills      fillCache
	planned    sync.Map // []any by version: what claim.lua is told of fills
	// secret is nil until a layout was found, and secretAsked when one was last looked
	// for, in milliseconds since 1970; see keyed.
	secret      atomic.Pointer[packed.Secret]
	secretAsked atomic.Int64
	hashing     *keyspace.Hashing // nil where keys have the entities themselves
	written     sync.Once         // makes what writers share
	expiry      []expiry          // by shard
	slack       time.Duration
}

// Option changes how a store keeps state.
type Option func(*Store)

// HashEntities has keys hold hashes made with a secret in the place of entities'
// values; a nil secret leaves them as they are. What is kept of an entity, such as
// the members of a set, stays readable.
func HashEntities(secret []byte) Option {
	return func(s *Store) {
		if secret != nil {
			s.hashing = keyspace.NewHashing(secret)
		}
	}
}

// New returns the store of a namespace with its fixed number of shards.
func New(client redis.UniversalClient, namespace string, shards int, options ...Option) *Store {
	s := &Store{
		redis: client, namespace: namespace, slack: defaultSlack, masters: newMasters(client),
		apply: redis.NewScript(applySource), compact: redis.NewScript(compactSource),
	}
	for shard := range shards {
		s.tags = append(s.tags, keyspace.ShardTag(namespace, shard, shards))
	}
	for _, option := range options {
		option(s)
	}
	s.Inspector = inspector.New(client, namespace, s.tags, s.hashing, s.slack)
	return s
}

// appendEntityKey appends the key of what a group keeps of an entity.
func (s *Store) appendEntityKey(dst []byte, shard int, group string, entity []byte) []byte {
	return s.hashing.AppendKey(dst, s.tags[shard], group, entity)
}

// Shards is the number of state shards.
func (s *Store) Shards() int { return len(s.tags) }

// Ping reaches Redis.
func (s *Store) Ping(ctx context.Context) error { return s.redis.Ping(ctx).Err() }

// loadScripts loads the scripts on every master that answers, which may have been
// started just now; see mendAppendOnly. One that does not answer is asked again once
// it does, for it says that it knows no script. The error is that none answers.
func (s *Store) loadScripts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.masters.write)
	defer cancel()
	all, err := s.masters.all(ctx, s.tags)
	if err != nil {
		return fmt.Errorf("load the scripts: %w", err)
	}
	errs := make([]error, len(all))
	var loading sync.WaitGroup
	for i, m := range all {
		loading.Go(func() { errs[i] = loadScriptsOn(ctx, m) })
	}
	loading.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, state.ErrUnavailable) {
			return fmt.Errorf("load the scripts: %w", err)
		}
	}
	if !slices.Contains(errs, nil) {
		return fmt.Errorf("load the scripts: %w", errs[0])
	}
	return nil
}

func loadScriptsOn(ctx context.Context, m *master) error {
	if err := m.err(); err != nil {
		return err
	}
	pipe := m.node.Pipeline()
	info := pipe.Info(ctx, "persistence")
	apply, compact := pipe.ScriptLoad(ctx, applySource), pipe.ScriptLoad(ctx, compactSource)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := errors.Join(apply.Err(), compact.Err()); err != nil {
		if unanswered(apply.Err()) || passing(apply.Err()) {
			return &UnavailableError{Address: m.address, Since: m.masters.now(), Err: err}
		}
		return err
	}
	mendAppendOnly(ctx, m.node, info.Val())
	return nil
}

// scriptGone says whether a server does not know the script.
func scriptGone(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NOSCRIPT")
}

// A crash may tear the append-only file in the midst of what a script has written,
// which stands there as MULTI … EXEC. Redis (7.0.15 as tried) then cuts the file off
// behind the last whole command and goes on appending: the MULTI stays open. When
// the file is read a second time, what is queued behind it runs together with what
// comes after it, so that a batch which was applied again counts twice. Rewriting
// the file leaves nothing of that.

// mendAppendOnly has a server rewrite its append-only file that has not done so
// since it was started. Where it is not allowed to ask that, it is left alone:
// weir doctor tells of it.
func mendAppendOnly(ctx context.Context, c redis.Cmdable, info string) {
	if rewriteNeeded(info) {
		_ = c.BgRewriteAOF(ctx).Err() // one that is under way, or not allowed
	}
}

// rewriteNeeded says by a server's INFO whether what it has read when it was started
// may still be in its append-only file.
func rewriteNeeded(info string) bool {
	found := infoFields(info)
	return found["aof_enabled"] == "1" && found["aof_last_rewrite_time_sec"] == "-1" &&
		found["aof_rewrite_in_progress"] == "0" && found["aof_rewrite_scheduled"] == "0"
}
