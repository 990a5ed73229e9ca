package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
)

// format is the version of the layout of keys and values, and formatField where it
// stands in the layout.
const (
	format      = 3
	formatField = "format"
)

//go:embed apply.lua
var applySource string

//go:embed compact.lua
var compactSource string

var _ store.Store = (*Store)(nil)

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	redis     redis.UniversalClient
	namespace string
	tags      []string // by shard
	apply     *redis.Script
	compact   *redis.Script
	masters   *masters
	replicas  *replicas // nil where all is read from masters
	plans     planCache
	past      past
	// secret is nil until a layout was found, and secretAsked when one was last looked
	// for, in milliseconds since 1970; see keyed.
	secret      atomic.Pointer[packed.Secret]
	secretAsked atomic.Int64
	pseudonyms  *pseudonyms // nil where keys have the entities themselves
	written     sync.Once   // makes what writers share
	expiry      []expiry    // by shard
	slack       time.Duration
}

// Option changes how a store keeps state.
type Option func(*Store)

// New returns the store of a namespace with its fixed number of shards.
func New(client redis.UniversalClient, namespace string, shards int, options ...Option) *Store {
	s := &Store{
		redis: client, namespace: namespace, slack: DefaultSlack, masters: newMasters(client),
		apply: redis.NewScript(applySource), compact: redis.NewScript(compactSource),
	}
	for shard := range shards {
		s.tags = append(s.tags, ShardTag(namespace, shard, shards))
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// Shards is the number of state shards.
func (s *Store) Shards() int { return len(s.tags) }

// Ping reaches Redis.
func (s *Store) Ping(ctx context.Context) error { return s.redis.Ping(ctx).Err() }

// loadScripts loads the scripts on every master, which may have been started just
// now; see mendAppendOnly.
func (s *Store) loadScripts(ctx context.Context) error {
	load := func(ctx context.Context, c redis.Cmdable) error {
		pipe := c.Pipeline()
		info := pipe.Info(ctx, "persistence")
		apply, compact := pipe.ScriptLoad(ctx, applySource), pipe.ScriptLoad(ctx, compactSource)
		_, _ = pipe.Exec(ctx) // each command has its own error
		if err := errors.Join(apply.Err(), compact.Err()); err != nil {
			return err
		}
		mendAppendOnly(ctx, c, info.Val())
		return nil
	}
	var err error
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return load(ctx, c) })
	} else {
		err = load(ctx, s.redis)
	}
	if err != nil {
		return fmt.Errorf("load the scripts: %w", err)
	}
	return nil
}

// scriptGone says whether a server does not know the script.
func scriptGone(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NOSCRIPT")
}
