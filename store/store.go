package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	_ "embed"

	"github.com/redis/go-redis/v9"
)

// format is the version of the layout of keys and values.
const format = 3

//go:embed apply.lua
var applySource string

//go:embed compact.lua
var compactSource string

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	redis      redis.UniversalClient
	namespace  string
	tags       []string // by shard
	apply      *redis.Script
	compact    *redis.Script
	masters    *masters
	replicas   *replicas // nil where all is read from masters
	plans      planCache
	past       past
	pseudonyms *pseudonyms // nil where keys have the entities themselves
	written    sync.Once   // makes what writers share
	expiry     []expiry    // by shard
}

// Option changes how a store keeps state.
type Option func(*Store)

// New returns the store of a namespace with its fixed number of shards.
func New(client redis.UniversalClient, namespace string, shards int, options ...Option) *Store {
	s := &Store{
		redis: client, namespace: namespace, masters: newMasters(client),
		apply: redis.NewScript(applySource), compact: redis.NewScript(compactSource),
	}
	for shard := range shards {
		s.tags = append(s.tags, shardTag(namespace, shard))
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

// LayoutError says that a namespace was made in another way than is asked for.
type LayoutError struct {
	Namespace, What, Found, Wanted string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("namespace %q was made with %s %s, not %s: use %s %[3]s, or another namespace",
		e.Namespace, e.What, e.Found, e.Wanted, e.What)
}

// CheckLayout compares the namespace with the layout wanted. It is a
// LayoutError if they differ; a namespace that is not there yet fits.
func (s *Store) CheckLayout(ctx context.Context) error {
	command := redis.NewMapStringStringCmd(ctx, "hgetall", layoutKey(s.namespace))
	if err := s.sendAbout(ctx, layoutKey(s.namespace), command); err != nil {
		return fmt.Errorf("read the layout of namespace %q: %w", s.namespace, err)
	}
	found := command.Val()
	if found["format"] != "" && found[hashEntities] == "" {
		found[hashEntities] = notHashed // made before there was a choice
	}
	for what, wanted := range s.layout() {
		if found[what] != "" && found[what] != wanted {
			return &LayoutError{Namespace: s.namespace, What: what, Found: found[what], Wanted: wanted}
		}
	}
	return nil
}

// Create makes the namespace where it is not there yet, checks its layout and
// loads the scripts.
func (s *Store) Create(ctx context.Context) error {
	if err := s.CheckLayout(ctx); err != nil {
		return err
	}
	layout := s.layout()
	// Whoever finds another field finds this one too, or a namespace that was made
	// before there was a choice.
	for _, what := range []string{hashEntities, "format", "shards"} {
		wanted := layout[what]
		if err := s.redis.HSetNX(ctx, layoutKey(s.namespace), what, wanted).Err(); err != nil {
			return fmt.Errorf("write the layout of namespace %q: %w", s.namespace, err)
		}
	}
	if err := s.CheckLayout(ctx); err != nil {
		return err
	}
	return s.loadScripts(ctx)
}

func (s *Store) layout() map[string]string {
	return map[string]string{"format": strconv.Itoa(format), "shards": strconv.Itoa(len(s.tags)), hashEntities: s.pseudonyms.layout()}
}

// loadScripts loads the scripts on every master.
func (s *Store) loadScripts(ctx context.Context) error {
	load := func(ctx context.Context, c redis.Cmdable) error {
		return errors.Join(c.ScriptLoad(ctx, applySource).Err(), c.ScriptLoad(ctx, compactSource).Err())
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

// parseOffset reads an offset as a reply gives it: nil or "" is Absent.
func parseOffset(reply any) (int64, error) {
	text, _ := reply.(string)
	if text == "" {
		return Absent, nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no offset", text)
	}
	return offset, nil
}

// scriptGone says whether a server does not know the script.
func scriptGone(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NOSCRIPT")
}
