// Package memory keeps state in the memory of the process, with the same meaning as package redisstore does in Redis,
// for replays of history within one process. It has no claims: every batch is applied.
package memory

import (
	"context"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
)

var _ store.Reader = (*Store)(nil)

// Store is the state of one replay. It is not safe for concurrent use.
type Store struct {
	entries map[key]*entry
	last    *entry // the one that was found last
	// swept is the number of entries after the last sweep.
	swept int
	now   int64 // the greatest Now of the applied batches
	// ends holds for each partition the offset after the last record applied.
	ends map[state.Partition]int64

	secret state.Secret
	buffer []byte // for packing states
}

// key is a series of an entity.
type key struct{ series, entity string }

type entry struct {
	key    key
	series *state.Series
	packed.State
	size    int   // packed length of the state, in bytes, when it was last measured
	grown   int   // approximate growth since
	horizon int64 // see drop
	beside  any   // see Log
}

// leastSweep is the number of entries below which the store does not look for old ones.
const leastSweep = 1024

// New returns an empty store that hashes values without a secret, so the same events always give the same answers.
// Without a secret, values with equal hashes can be constructed.
func New() *Store { return NewKeyed(state.Secret{}) }

// NewKeyed returns an empty store that hashes values with a secret.
func NewKeyed(secret state.Secret) *Store {
	return &Store{entries: map[key]*entry{}, ends: map[state.Partition]int64{}, secret: secret}
}

// Apply applies a batch. It never fails.
func (s *Store) Apply(_ context.Context, b *state.Batch) error {
	s.now = max(s.now, b.Now)
	for i := range b.Ranges {
		s.ends[b.Ranges[i].Partition] = b.Ranges[i].To
	}
	for i := range b.Updates {
		u := &b.Updates[i]
		s.Update(u.Entity, b.Mutations[u.From:u.To], s.now)
	}
	s.Sweep(s.now)
	return nil
}

// Update applies mutations to an entity at a moment, in milliseconds. The moments of an entity must not go back.
func (s *Store) Update(entity []byte, mutations []state.Mutation, now int64) {
	for i := range mutations {
		mutation := &mutations[i]
		e := s.entry(mutation.Series, entity)
		e.Apply(mutation)
		if mutation.Series.Keep > 0 {
			e.drop(mutation.Series.Horizon(now))
		}
		if mutation.Series.Bytes > 0 {
			s.fit(e, mutation)
		}
	}
}

// drop drops the state before a tile. Beside a log, a caller may keep windows that still hold what has become too old
// since the last update. They move on before the next one, so only then is it dropped.
func (e *entry) drop(before int64) {
	last := e.horizon
	if e.horizon = before; e.beside != nil {
		before = last
	}
	e.Prune(before)
}

// fit keeps a state after a mutation within the bytes of its series, as a compaction does in Redis.
// It measures the state again only after it has grown by a quarter of them, so that each mutation
// pays for a few bytes only.
func (s *Store) fit(e *entry, mutation *state.Mutation) {
	const operation = 8 // a tile, a number, lengths
	e.grown += mutation.Size() + operation
	if most := e.series.Bytes; e.grown < most/4 || e.size+e.grown <= most {
		return
	}
	s.buffer = packed.Fit(s.buffer[:0], e.series, e.State)
	e.size, e.grown = len(s.buffer), 0
}

// entry finds or makes the state of a series of an entity.
func (s *Store) entry(series *state.Series, entity []byte) *entry {
	e := s.find(series, entity)
	if e == nil {
		e = &entry{key: key{series.ID, string(entity)}, series: series, State: packed.NewKeyed(series, s.secret)}
		s.entries[e.key] = e
	}
	return e
}

// find finds the state of a series of an entity; nil if there is none. It mostly is the one that was found last,
// because a replay changes an entity and then asks about it.
func (s *Store) find(series *state.Series, entity []byte) *entry {
	if l := s.last; l != nil && l.key.entity == string(entity) && l.key.series == series.ID {
		return l
	}
	e := s.entries[key{series.ID, string(entity)}]
	s.last = e
	return e
}

// Sweep drops entities whose state is too old to be asked for at a moment, in milliseconds. It does
// so when the number of entities has doubled, so its cost for each is small.
func (s *Store) Sweep(now int64) {
	if len(s.entries) <= max(leastSweep, 2*s.swept) {
		return
	}
	for k, e := range s.entries {
		if e.series.Keep > 0 && e.Prune(e.series.Horizon(now)) {
			delete(s.entries, k)
		}
	}
	s.last = nil
	s.swept = len(s.entries)
}

// Read answers all reads, in order. The result is valid until the next Apply.
func (s *Store) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	states := make([]state.WindowState, len(reads))
	for i := range reads {
		if e := s.entries[key{reads[i].Series.ID, reads[i].Entity}]; e != nil {
			states[i] = e.Read(&reads[i])
		}
	}
	return states, nil
}

// Log returns the log of an entity in a series of logs, valid until the next Apply. Callers may keep data beside each
// log, which is dropped with it; beside is nil for an empty log.
func (s *Store) Log(series *state.Series, entity []byte) (log state.GrowingLog, beside *any) {
	e := s.find(series, entity)
	if e == nil {
		return state.GrowingLog{Cut: state.MinTime}, nil
	}
	return packed.LogOf(e.State), &e.beside
}

// ReadOverlay answers all reads as if a batch had just been applied, except the events that were applied meanwhile; see
// packed.View. It changes nothing.
func (s *Store) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	if pending == nil {
		return s.Read(ctx, reads)
	}
	states := make([]state.WindowState, len(reads))
	for i := range reads {
		r := &reads[i]
		view := s.view(r.Entity, r.Series)
		if !r.Stored {
			ids := s.view(r.Entity, packed.IDSeries(nil, pending, r.Series.Group, r.Entity)...)
			view.Overlay(pending, r.Entity, ids)
		}
		view.Read(0, r, &states[i])
	}
	return states, nil
}

// Recycle does nothing.
func (s *Store) Recycle([]state.WindowState) {}

// ReadReplica is ReadOverlay: there are no replicas.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	states, err := s.ReadOverlay(ctx, reads, pending)
	return states, state.Freshness{}, err
}

// Clock returns the greatest timestamp of a record applied, in milliseconds.
func (s *Store) Clock(context.Context) (int64, error) { return s.now, nil }

// History is nil: one plan wrote all state.
func (s *Store) History(context.Context) (*state.History, error) { return nil, nil }

// Busiest is empty: there are no processors.
func (s *Store) Busiest(context.Context) ([]state.Busiest, error) { return nil, nil }

// Applied reports whether a record was applied, under any plan.
func (s *Store) Applied(_ context.Context, p state.Partition, offset int64, _ []state.Read) (bool, error) {
	return s.ends[p.Itself()] > offset, nil
}

// Progress returns one shard's position of each partition, under any plan.
func (s *Store) Progress(_ context.Context, partitions []state.Partition) ([][]state.Position, error) {
	all := make([][]state.Position, len(partitions))
	for i, p := range partitions {
		end, applied := s.ends[p.Itself()]
		if !applied {
			end = -1
		}
		all[i] = []state.Position{{Offset: end}}
	}
	return all, nil
}

// view returns a copy of the states of some series of an entity.
func (s *Store) view(entity string, series ...*state.Series) *packed.View {
	v := &packed.View{Secret: s.secret}
	for _, of := range series {
		var held packed.State
		if e := s.entries[key{of.ID, entity}]; e != nil {
			held = e.State
		}
		v.AddCopy(of, held)
	}
	return v
}

// Len returns the number of series of entities that are held.
func (s *Store) Len() int { return len(s.entries) }
