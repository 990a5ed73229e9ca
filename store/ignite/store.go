package ignite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/ignite/thin"
	"github.com/weir-stream/weir/store/values"
)

// Config says where and how a namespace is kept.
type Config struct {
	Client    *thin.Client
	Namespace string // the name of its cache
	Shards    int
	Backups   int    // copies of each value beside the first, for a cache that does not exist yet
	Region    string // the data region of such a cache, "" for the default one
	HashKey   []byte // keys the hashes of entities, which values then do not name; nil for none
	SealKey   []byte // of a seal that namespaces share; nil leaves each its own
	Slack     time.Duration
	Mutations int // of a transaction at most
}

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	*values.Store
	engine *engine
	config Config
}

// New returns the store of a namespace.
func New(c Config) *Store {
	e := newEngine(&c)
	return &Store{values.New(e, options(&c)), e, c}
}

func newEngine(c *Config) *engine {
	cache := c.Client.Cache(c.Namespace)
	create := func(ctx context.Context) error {
		err := cache.Create(ctx, c.Backups, c.Region)
		if errors.Is(err, thin.ErrNotTransactional) || errors.Is(err, thin.ErrLossPolicy) || errors.Is(err, thin.ErrAffinity) {
			err = fmt.Errorf("%w: %w", store.ErrLayout, err)
		}
		if err != nil {
			return fmt.Errorf("make the cache %s: %w", c.Namespace, err)
		}
		return nil
	}
	return &engine{client: c.Client, cache: cache, create: create, hash: c.HashKey}
}

func options(c *Config) values.Options {
	o := values.Options{Shards: c.Shards, Mutations: c.Mutations, Slack: c.Slack, Hashed: c.HashKey != nil, Now: time.Now}
	if c.SealKey != nil {
		seal := state.NewSeal(c.SealKey)
		o.Seal = &seal
	}
	return o
}

// Create makes the cache and the namespace if they do not exist. From then on, if all copies of a partition are lost and were in
// memory alone, whoever meets it here makes the cache again, empty.
func (s *Store) Create(ctx context.Context) error {
	s.engine.makes.Store(true)
	if err := s.engine.create(ctx); err != nil {
		return err
	}
	return s.Store.Create(ctx)
}

// Backups returns how many copies there are of each value beside the first; known is false if the cache does not exist yet.
func (s *Store) Backups(ctx context.Context) (backups int, known bool, err error) {
	backups, err = s.engine.cache.Backups(ctx)
	if isNoCache(err) {
		return 0, false, nil
	}
	return backups, err == nil, err
}

// History is that of the protocol. It is superseded once nodes join or leave, or a connection is opened: partitions may be other
// nodes', or the cache was made again, empty.
func (s *Store) History(ctx context.Context) (*state.History, error) {
	return s.HistoryWhile(ctx, s.config.Client.Changes)
}

// Ready returns nil if the namespace can be used, or does not exist yet.
func (s *Store) Ready(ctx context.Context) error { return s.CheckLayout(ctx) }

// Inspect reads the state of an entity in the group of a series, unchanged.
func (s *Store) Inspect(ctx context.Context, series *state.Series, entity string) (packed.Held, error) {
	h, err := s.Store.Inspect(ctx, series, entity)
	h.Key = s.engine.id(values.Key{Shard: h.Shard, Group: series.Group, Entity: entity}).String()
	return h, err
}

// Greatest lists the longest values, longest first, at most that many, of those that it looks at while its patience lasts.
func (s *Store) Greatest(ctx context.Context, most int, patience time.Duration) (found state.LongKeys, err error) {
	found.Hashed = s.config.HashKey != nil
	end := time.Now().Add(patience)
	found.All, err = s.walk(ctx, func(k state.LongKey) bool {
		found.Looked++
		if found.Keys = append(found.Keys, k); len(found.Keys) > 2*most {
			found.Keys = longest(found.Keys, most)
		}
		return time.Now().Before(end)
	})
	found.Keys = longest(found.Keys, most)
	return found, err
}

func longest(keys []state.LongKey, most int) []state.LongKey {
	slices.SortFunc(keys, func(a, b state.LongKey) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key)) })
	return keys[:min(most, len(keys))]
}

// CountKeys counts the values with state by group. It looks at about `most` of them: they are in the order of their hashes, so
// they are a fair sample.
func (s *Store) CountKeys(ctx context.Context, most int64) (state.KeyCount, error) {
	found := state.KeyCount{Groups: map[string]int64{}}
	size, err := s.engine.cache.Size(ctx)
	if isNoCache(err) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("ask for the number of values: %w", err)
	}
	all, err := s.walk(ctx, func(k state.LongKey) bool {
		found.Looked++
		found.Groups[k.Group]++
		return found.Looked < most
	})
	if err != nil {
		return found, fmt.Errorf("walk over the values: %w", err)
	}
	if found.Keys = found.Looked; !all {
		found.Keys = max(size, found.Looked)
		for group, n := range found.Groups {
			found.Groups[group] = n * found.Keys / found.Looked
		}
	}
	return found, nil
}

// walk visits all values with state until visit returns false.
func (s *Store) walk(ctx context.Context, visit func(state.LongKey) bool) (all bool, err error) {
	for shard := range s.Shards() {
		err := s.engine.cache.Scan(ctx, s.engine.id(values.Key{Shard: shard}).Partition(), func(e thin.Entry) error {
			group, entity, err := values.Owner(e.Value)
			if err != nil {
				return nil //nolint:nilerr // a record, or a value of somebody else
			}
			if !visit(state.LongKey{Key: e.Key.String(), Group: group, Entity: entity, Bytes: int64(len(e.Value)), Shard: shard}) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

var errEnough = errors.New("the walk has seen enough")
