// Package plain is a second store, for tests: the whole contract in the memory of one process, written as plainly as
// possible. So tests that run on it depend only on the contract. Nothing in it expires.
package plain

import (
	"context"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
)

var _ store.Store = (*Store)(nil)

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex // guards all that follows, so each call is one step
	shards []*shard
	states map[key]packed.State
	plans  map[string]*state.Plan // by version
	fills  map[string]*state.Fill // by ID
	used   map[registered]usage

	archives []*state.Archive
	busiest  map[string]state.Busiest // by processor
}

// key is a series of an entity. Entities of different groups may have the same text.
type key struct{ series, group, entity string }

func keyOf(s *state.Series, entity string) key { return key{s.ID, s.Group, entity} }

// New returns an empty store with a number of shards.
func New(shards int) *Store {
	s := &Store{
		states: map[key]packed.State{}, plans: map[string]*state.Plan{}, fills: map[string]*state.Fill{}, used: map[registered]usage{},
		busiest: map[string]state.Busiest{},
	}
	for range shards {
		s.shards = append(s.shards, newShard())
	}
	return s
}

// Create does nothing: the namespace is there.
func (s *Store) Create(context.Context) error { return nil }

// Shards returns the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// ShardOf returns the shard that an update is applied to.
func (s *Store) ShardOf(u *state.EntityUpdate, shards int) int { return state.Shard(u.Hash, shards) }

// Available is nil: there is nothing to reach.
func (s *Store) Available(context.Context, int) error { return nil }

// NewWriter returns a writer.
func (s *Store) NewWriter() store.Writer { return writer{s} }

type writer struct{ store *Store }

// Apply applies a batch, shard by shard.
func (w writer) Apply(_ context.Context, b *state.Batch) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	byShard := make([][]*state.EntityUpdate, len(w.store.shards))
	for i := range b.Updates {
		u := &b.Updates[i]
		shard := w.store.ShardOf(u, len(w.store.shards))
		byShard[shard] = append(byShard[shard], u)
	}
	for shard, updates := range byShard {
		w.store.apply(b, shard, updates)
	}
	return nil
}

// apply applies the updates of one shard that it lacks, and moves its progress.
func (s *Store) apply(b *state.Batch, shard int, updates []*state.EntityUpdate) {
	wanted := make([]bool, len(b.Ranges))
	for _, u := range updates {
		r := &b.Ranges[u.Range]
		wanted[u.Range] = wanted[u.Range] || r.Changes(shard, &r.Progress[shard], u)
	}
	sh, moved := s.shards[shard], false
	at := make([]*state.Position, len(b.Ranges)) // nil where nothing is applied
	for i := range b.Ranges {
		if r := &b.Ranges[i]; r.Moves(shard) && (wanted[i] || b.EveryShard) {
			at[i] = sh.meet(r, shard)
			moved = moved || at[i] != nil
		}
	}
	for _, u := range updates {
		if r := &b.Ranges[u.Range]; at[u.Range] == nil || !r.Changes(shard, &r.Progress[shard], u) {
			continue
		}
		for i := u.From; i < u.To; i++ {
			s.mutate(string(u.Entity), &b.Mutations[i])
		}
	}
	for i, p := range at {
		if r := &b.Ranges[i]; p != nil {
			if r.To > p.Offset {
				*p = p.To(r.To)
				p.Epoch = max(p.Epoch, r.Epoch)
			}
			r.Progress[shard] = *p
		}
	}
	if moved {
		sh.now = max(sh.now, state.Believed(b.Now, time.Now()))
	}
}

func (s *Store) mutate(entity string, m *state.Mutation) {
	k := keyOf(m.Series, entity)
	if s.states[k] == nil {
		s.states[k] = packed.NewKeyed(m.Series, packed.Secret{})
	}
	s.states[k].Apply(m)
}

// view returns a copy of the states of some series of an entity.
func (s *Store) view(entity string, series ...*state.Series) *packed.View {
	v := &packed.View{}
	for _, of := range series {
		v.AddCopy(of, s.states[keyOf(of, entity)])
	}
	return v
}

// Read answers all reads.
func (s *Store) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, &state.Batch{})
}

// ReadOverlay answers all reads as if a batch had just been applied.
func (s *Store) ReadOverlay(_ context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	if pending == nil {
		pending = &state.Batch{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answers := make([]state.WindowState, len(reads))
	for i := range reads {
		r := &reads[i]
		v := s.view(r.Entity, r.Series)
		v.Overlay(pending, r.Entity, s.view(r.Entity, packed.IDSeries(nil, pending, r.Series.Group, r.Entity)...))
		v.Read(0, r, &answers[i])
	}
	return answers, nil
}

// ReadReplica is ReadOverlay: there are no replicas.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	answers, err := s.ReadOverlay(ctx, reads, pending)
	return answers, state.Freshness{}, err
}

// Recycle does nothing.
func (s *Store) Recycle([]state.WindowState) {}
