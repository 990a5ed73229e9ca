package values

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/protocol"
)

// format is the version of the layout of values.
const format = 1

var _ store.Store = (*Store)(nil)

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	*protocol.Protocol
	engine  Engine
	options Options
	secret  atomic.Pointer[state.Secret] // nil until it was read
	creates atomic.Bool                  // this store has made the namespace, or found it made
}

// Options say how a store keeps state.
type Options struct {
	// Shards is the number of shards, for a namespace that does not exist yet.
	Shards int
	// Mutations bounds what one step applies; a batch may take several. 0 for no bound.
	Mutations int
	// Slack is how much longer than needed state is kept.
	Slack time.Duration
	// Hashed means that values do not name their entities.
	Hashed bool
	// Seal is one that namespaces share; nil leaves each its own.
	Seal *state.Seal
	// Now is the clock of the process, with which packed state is pruned.
	Now func() time.Time
}

// New returns the store of a namespace.
func New(engine Engine, o Options) *Store {
	s := &Store{engine: engine, options: o}
	s.Protocol = protocol.New(records{s}, s.shardOf, o.Slack, o.Now)
	return s
}

// layout is what a namespace is like.
type layout struct {
	Format int    `json:"format"`
	Shards int    `json:"shards"`
	Secret string `json:"secret"`
}

// LayoutError is the error about a namespace that is not as wanted. It is a store.ErrLayout.
type LayoutError struct {
	What          string
	Found, Wanted int
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("the namespace has another layout: %s is %d, want %d", e.What, e.Found, e.Wanted)
}

func (e *LayoutError) Unwrap() error { return store.ErrLayout }

// Create makes the namespace if it does not exist. If its layout is lost, and state is not, the layout is made again.
func (s *Store) Create(ctx context.Context) error {
	secret, err := s.secretToKeep(ctx)
	if err != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	made := layout{Format: format, Shards: s.options.Shards, Secret: secret.Text()}
	var found error
	err = s.engine.Update(ctx, layoutRegister, []Key{{Shard: layoutRegister}}, func(held [][]byte) []Write {
		if found = nil; len(held[0]) > 0 {
			found = s.adopt(held[0])
			return nil
		}
		text, err := json.Marshal(made)
		if found = err; err != nil {
			return nil
		}
		return []Write{{Key: Key{Shard: layoutRegister}, Bytes: text}}
	})
	if err == nil {
		err = found
	}
	if err != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	s.creates.Store(true)
	return s.CheckLayout(ctx)
}

// secretToKeep returns the secret for a layout that does not exist: that of the state, if there is any, else a new one.
func (s *Store) secretToKeep(ctx context.Context) (state.Secret, error) {
	if known := s.secret.Load(); known != nil {
		return *known, nil
	}
	switch text, err := (records{s}).secret(ctx); {
	case err != nil:
		return state.Secret{}, err
	case text != "":
		return state.ParseSecret(text)
	default:
		return state.NewSecret(), nil
	}
}

// CheckLayout compares the namespace with what is wanted; one that does not exist yet fits. Who has made the namespace makes it
// again if it is lost.
func (s *Store) CheckLayout(ctx context.Context) error {
	held, err := s.layout(ctx)
	switch {
	case err != nil:
		return err
	case len(held) > 0:
		return s.adopt(held)
	case s.creates.Swap(false): // Create sets it again
		return s.Create(ctx)
	}
	return nil
}

// layout reads the layout; it is empty if the namespace does not exist yet.
func (s *Store) layout(ctx context.Context) ([]byte, error) {
	held := s.engine.Read(ctx, []Key{{Shard: layoutRegister}})[0]
	if held.Err != nil {
		return nil, fmt.Errorf("read the layout: %w", held.Err)
	}
	return held.Bytes, nil
}

// Adopt takes the number of shards from the namespace, if it exists, and then does what CheckLayout does. No other method may be
// called before or meanwhile.
func (s *Store) Adopt(ctx context.Context) error {
	held, err := s.layout(ctx)
	if err != nil || len(held) == 0 {
		return err
	}
	var l layout
	if err := json.Unmarshal(held, &l); err == nil && l.Shards > 0 {
		s.options.Shards = l.Shards
	}
	return s.adopt(held)
}

// adopt takes the secret from a layout, if that is as wanted.
func (s *Store) adopt(text []byte) error {
	var l layout
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("%w: its layout cannot be read: %w", store.ErrLayout, err)
	}
	switch {
	case l.Format != format:
		return &LayoutError{"format", l.Format, format}
	case l.Shards != s.options.Shards:
		return &LayoutError{"shards", l.Shards, s.options.Shards}
	}
	secret, err := state.ParseSecret(l.Secret)
	if err != nil {
		return fmt.Errorf("%w: its secret cannot be read: %w", store.ErrLayout, err)
	}
	s.secret.Store(&secret)
	return nil
}

// Secret returns the secret with which values are hashed.
func (s *Store) Secret(ctx context.Context) (state.Secret, error) {
	if known := s.secret.Load(); known != nil {
		return *known, nil
	}
	if err := s.CheckLayout(ctx); err != nil {
		return state.Secret{}, err
	}
	if known := s.secret.Load(); known != nil {
		return *known, nil
	}
	return state.Secret{}, store.ErrNoNamespace
}

// Seal returns the seal of the options, or of the namespace's secret.
func (s *Store) Seal(ctx context.Context) (state.Seal, error) {
	if s.options.Seal != nil {
		return *s.options.Seal, nil
	}
	secret, err := s.Secret(ctx)
	return secret.Seal(), err
}

// Shards returns the number of shards.
func (s *Store) Shards() int { return s.options.Shards }

// ShardOf returns the shard that an update is applied to.
func (s *Store) ShardOf(u *state.EntityUpdate, shards int) int { return state.Shard(u.Hash, shards) }

func (s *Store) shardOf(entity string) int {
	text := unsafe.Slice(unsafe.StringData(entity), len(entity)) // read only
	return state.Shard(state.EntityHash(text), s.options.Shards)
}

// Available returns nil if a shard can be reached, as far as is known.
func (s *Store) Available(_ context.Context, shard int) error { return s.engine.Available(shard) }

// keyOf returns the key of an entity's state in a group.
func (s *Store) keyOf(group, entity string) Key { return Key{s.shardOf(entity), group, entity} }

// stateMark begins a value that holds state.
const stateMark = 0xA1

var (
	errForeign = errors.New("the value was not written by Weir")
	errOther   = errors.New("the value is that of another entity")
)

// lifetime returns how long a value is kept after a write, in ms, given how long after a record it may be asked for.
func (s *Store) lifetime(keep int64) int64 {
	if keep == 0 {
		return 0
	}
	return keep + keep/8 + s.options.Slack.Milliseconds()
}

// secretFor returns the secret if the namespace exists: state without one is that of nobody.
func (s *Store) secretFor(ctx context.Context) (state.Secret, error) {
	secret, err := s.Secret(ctx)
	if errors.Is(err, store.ErrNoNamespace) {
		err = nil
	}
	return secret, err
}

// view unpacks the value of an entity, with some series. If it cannot be read, that is the error of the view.
func (s *Store) view(secret state.Secret, k Key, held Value, series []*state.Series) *packed.View {
	v := &packed.View{Secret: secret, Err: held.Err}
	for _, of := range series {
		v.Add(of)
	}
	v.Begin()
	if held.Err != nil || held.Bytes == nil {
		return v
	}
	_, sections, err := s.openOf(k, held.Bytes)
	if err == nil {
		err = v.Merge(sections)
	}
	v.Err = err
	return v
}
